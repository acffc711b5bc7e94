"""From verdicts to estimates."""

from __future__ import annotations

import pytest

from assay.scoring import Tally, estimate, estimates, sign_test, tally
from assay.scoring.estimates import measure_score
from assay.types import Status, Verdict


def verdict(task_id: str, sample: int, status: Status) -> Verdict:
    return Verdict(task_id, sample, status, "reason")


def test_invalid_verdicts_are_beside_the_score_not_inside() -> None:
    verdicts = [verdict("a", 0, "pass"), verdict("a", 1, "invalid"), verdict("b", 0, "invalid")]
    tallies = tally(["a", "b"], verdicts)
    assert tallies == [Tally("a", 1, 1), Tally("b", 0, 0)]
    found = estimate(tallies, 1)
    assert found is not None
    assert (found.value, found.problems) == (1.0, 1)


def test_only_those_k_that_the_samples_allow() -> None:
    assert [e.k for e in estimates([Tally("a", 1, 1)])] == [1]
    assert [e.k for e in estimates([Tally("a", 10, 3), Tally("b", 100, 3)])] == [1, 10, 100]
    assert estimates([]) == []


def test_a_problem_counts_once_however_many_samples_it_has() -> None:
    found = estimate([Tally("a", 10, 10), Tally("b", 1, 0)], 1)
    assert found is not None
    assert found.value == 0.5


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [(0, 0, 1.0), (5, 5, 1.0), (6, 0, 2 / 64), (0, 6, 2 / 64), (8, 2, 0.109375)],
)
def test_sign_test(gained: int, lost: int, p: float) -> None:
    assert sign_test(gained, lost) == pytest.approx(p)


def test_a_measure_is_the_mean_of_the_means_of_problems() -> None:
    numbers: dict[str, list[float | None]] = {
        "a": [0.0, 0.2, None],
        "b": [0.4],
        "c": [None],
        "d": [0.1],
    }
    found = measure_score(numbers, {})
    assert found is not None
    assert found.value == pytest.approx((0.1 + 0.4 + 0.1) / 3)
    assert (found.problems, found.samples, found.unmeasured) == (3, 4, 2)
    assert found.low == 0.0  # Student's interval reaches below what the number can be
    assert found.high is not None
    assert found.high > 0.4
    paired = measure_score(numbers, {"a": "x", "b": "x", "d": "y"})
    assert paired is not None
    assert paired.high is not None
    assert paired.high > found.high  # two clusters say less than three problems
    one = measure_score(numbers, dict.fromkeys("abd", "x"))
    assert one is not None
    assert (one.low, one.high) == (None, None)
    assert measure_score({"c": [None]}, {}) is None
