"""Estimates of a suite's time, by earlier runs of the same model."""

from __future__ import annotations

from assay.pipeline.suite.estimate import find_pace
from assay.runs import Result
from assay.runs.result import Timing
from tests.report.leaderboards import make_result

WEIGHTS = "weights"


def run(benchmark: str, day: int, *, reused: int = 0, weights: str = WEIGHTS) -> Result:
    timing = Timing(tokens_generated=1000, inference_s=10.0 * day, reused=reused)
    return make_result("one", benchmark=benchmark, day=day, weights=weights, timing=timing)


def found(*earlier: Result) -> str:
    pace = find_pace(earlier, WEIGHTS, "mbppplus")
    return "" if pace is None else pace.source


def test_a_run_on_the_same_benchmark_is_preferred() -> None:
    other, same = run("humaneval", 2), run("mbppplus", 1, reused=50)
    assert found(other, same) == same.run
    assert found(other) == other.run


def test_a_run_that_asked_the_model_for_one_completion_says_little() -> None:
    """An estimate from such a run, though it is the newest, is 56 minutes instead of 4."""
    little, much = run("humanevalplus", 3, reused=99), run("humaneval", 2)
    assert found(little, much) == much.run
    assert found(run("mbppplus", 4, reused=99), much) == much.run
    assert found(little) == little.run


def test_runs_of_other_models_and_without_generation_say_nothing() -> None:
    assert found(run("mbppplus", 1, weights="others"), run("mbppplus", 2, reused=100)) == ""


def test_the_newest_of_equals_counts() -> None:
    newer, older = run("mbppplus", 2), run("mbppplus", 1)
    assert found(newer, older) == newer.run
    pace = find_pace([newer], WEIGHTS, "mbppplus")
    assert pace is not None
    assert (pace.new_tokens, pace.seconds) == (10.0, 0.2)
