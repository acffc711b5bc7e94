"""Scores beside the headline of a run: other estimates, scores by label, and other judges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.report.pages.run.scores import (
    list_checks,
    list_estimates,
    render_tables,
    render_tiles,
)
from assay.runs import Result
from assay.runs.result import (
    BreakdownResult,
    CrossCheck,
    Dependence,
    Disagreement,
    GroupResult,
    SequentialResult,
)
from assay.scoring import BestOfN, MatchScore
from assay.scoring.estimates import MeasureScore
from assay.scoring.intervals import Interval
from assay.scoring.sequential import Look
from assay.types import Estimate
from tests.report.run_folders import toy_samples, write_run


@pytest.fixture
def result(tmp_path: Path) -> Result:
    found = write_run(tmp_path, toy_samples())
    assert found is not None
    return found


def test_a_plain_run_has_nothing_else(result: Result) -> None:
    assert render_tiles(result) == render_tables(result) == ""
    assert list(list_checks(result)) == []


def test_every_estimate_is_a_tile(result: Result) -> None:
    one = replace(result.pass_at[1], value=0.25, low=0.125, high=0.5)
    scores = replace(
        result.results, pass_at={1: one, 10: one},
        groups={"base": GroupResult(0.5, {1: one}), "plus": GroupResult(0.4, {1: one})},
        best_of_n=BestOfN("majority", 4, one, 0, {}), infilling=MatchScore(one, one),
        measures={"Excess<b>": MeasureScore(0.25, None, None, 3, 3)},
    )  # fmt: skip
    found = replace(result, results=scores)
    assert [name for name, *_ in list_estimates(found)] == [
        "pass@10", "pass@1, base tests alone", "best of 4 by majority", "exact match",
        "edit similarity", "Excess<b>",
    ]  # fmt: skip
    shown = render_tiles(found)
    assert shown.count("25.0 %") == 6
    assert shown.count("12.5") == 5
    assert "Excess&lt;b&gt;" in shown


def test_scores_by_label_are_a_table(result: Result) -> None:
    def by(*values: float) -> dict[str, BreakdownResult]:
        one: Estimate = result.pass_at[1]
        return {
            f"kind {at}": BreakdownResult(at + 2, {1: replace(one, value=value)})
            for at, value in enumerate(values)
        }

    scores = replace(result.results, breakdowns={"bug": by(0.5, 0.75), "only": by(1.0)})
    extraction = (Dependence("fenced", 12, 3, 1),)
    shown = render_tables(replace(result, results=scores, extraction=extraction))
    assert "pass@1 by bug" in shown
    assert "75.0" in shown
    assert "only" not in shown  # one value compares with nothing
    assert "Passes lost" in shown


def test_other_judges_and_sequential_comparisons_are_marks(result: Result) -> None:
    differs = Disagreement("toy/1", 0, "pass", "fail")
    look = Look(2, 40, 6, 2, Interval(0.0, 0.2, 0.95, "betting"), 30.0, "better")
    found = replace(
        result, cross_check=CrossCheck("evalplus", 6, (differs, replace(differs, explained="x"))),
        sequential=SequentialResult("base", "model-b", 0.02, 8, "better", (look,)),
    )  # fmt: skip
    assert list(list_checks(found)) == [
        ("bad", "evalplus", "2 of 6 verdicts differ, 1 of them unexplained."),
        ("soft", "better", "+10.0 points compared with model-b, after 2 of 8 rounds."),
    ]
