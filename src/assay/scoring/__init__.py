"""Compute pass@k from verdicts. Pure functions."""

from assay.scoring.coverage import Coverage, coverage
from assay.scoring.estimates import (
    STANDARD_KS,
    BestOfN,
    BreakdownScore,
    GroupScore,
    MatchScore,
    as_failed,
    break_down,
    estimate,
    estimate_of_chosen,
    estimates,
    group_scores,
    match_score,
    tally,
)
from assay.scoring.intervals import clustered_wilson, wilson
from assay.scoring.paired import sign_test
from assay.scoring.pass_at_k import Tally, pass_at_k

__all__ = [
    "STANDARD_KS",
    "BestOfN",
    "BreakdownScore",
    "Coverage",
    "GroupScore",
    "MatchScore",
    "Tally",
    "as_failed",
    "break_down",
    "clustered_wilson",
    "coverage",
    "estimate",
    "estimate_of_chosen",
    "estimates",
    "group_scores",
    "match_score",
    "pass_at_k",
    "sign_test",
    "tally",
    "wilson",
]
