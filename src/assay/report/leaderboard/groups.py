"""Group the models of a column that cannot be distinguished."""

from __future__ import annotations

from collections.abc import Mapping

from assay.runs import Result
from assay.runs.compare import tally_problems
from assay.scoring.comparison import group_verdicts

# All pairs are tested. On HumanEval, 50 models (1,225 pairs) take 2 s of CPU time.
MOST_MODELS = 50


def group_by_tests(results: Mapping[str, Result]) -> Mapping[str, str]:
    """Return letters for models that cannot be distinguished: paired tests of all pairs, by Holm.

    There are no letters for one model, and none for more than ``MOST_MODELS``.
    """
    if not 1 < len(results) <= MOST_MODELS:
        return {}
    tables = {name: list(tally_problems(result).values()) for name, result in results.items()}
    return group_verdicts(tables).letters
