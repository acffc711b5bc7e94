"""Intervals: known values, and coverage by simulation."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.scoring.distributions import student_t_quantile
from assay.scoring.intervals import clustered_wilson, wilson


def test_wilson_gives_the_published_example() -> None:
    # Newcombe 1998, table I: 81 of 263
    assert wilson(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)


def test_one_sample_a_problem_is_wilson() -> None:
    values = [1.0] * 20 + [0.0] * 144
    assert clustered_wilson(values, 164) == pytest.approx(wilson(20 / 164, 164))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_no_certainty_at_the_ends(value: float) -> None:
    low, high = clustered_wilson([value] * 20, 200)
    assert high - low > 0.1


@given(st.integers(1, 2000), st.integers(1, 10))
def test_the_ends_are_exact_if_all_or_none_pass(problems: int, samples: int) -> None:
    """Rounding left 4.9e-17 as the low end of a score of 0."""
    assert clustered_wilson([0.0] * problems, problems * samples)[0] == 0.0
    assert clustered_wilson([1.0] * problems, problems * samples)[1] == 1.0


@given(st.lists(st.integers(0, 10), min_size=1, max_size=50))
def test_the_mean_lies_inside_and_the_interval_in_0_1(rights: list[int]) -> None:
    values = [r / 10 for r in rights]
    mean = sum(values) / len(values)
    low, high = clustered_wilson(values, 10 * len(values))
    assert 0 <= low <= mean + 1e-9
    assert mean - 1e-9 <= high <= 1


def test_samples_of_one_problem_are_not_counted_as_independent() -> None:
    all_or_nothing = [1.0] * 30 + [0.0] * 70  # 10 samples each, but only 100 things were seen
    low, high = clustered_wilson(all_or_nothing, 1000)
    assert low < wilson(0.3, 100)[0]
    assert high > wilson(0.3, 100)[1]
    assert clustered_wilson([0.3, 0.2, 0.4] * 33 + [0.3], 1000)[1] < wilson(0.3, 100)[1]


def test_never_narrower_than_independent_samples_would_give() -> None:
    alike = [0.5, 0.5, 0.5, 0.5, 0.6]
    assert clustered_wilson(alike, 50) == pytest.approx(wilson(0.52, 50))


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.7062), (2, 4.30265), (4, 2.77645), (10, 2.22814), (30, 2.04227), (163, 1.97462)],
)
def test_students_t(freedom: int, quantile: float) -> None:
    assert student_t_quantile(0.975, freedom) == pytest.approx(quantile, abs=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("problems", "n_samples"), [(5, 10), (20, 10), (164, 1), (164, 10)])
def test_covers_the_truth_about_95_times_in_100(problems: int, n_samples: int) -> None:
    """Problems drawn from a population of uneven difficulty, the way benchmarks are."""
    draw = random.Random(20260101)
    truth, hits, rounds = 0.25, 0, 2000  # Beta(0.5, 1.5) has mean 0.25
    for _ in range(rounds):
        chances = [draw.betavariate(0.5, 1.5) for _ in range(problems)]
        values = [sum(draw.random() < p for _ in range(n_samples)) / n_samples for p in chances]
        low, high = clustered_wilson(values, problems * n_samples)
        hits += low <= truth <= high
    assert 0.925 < hits / rounds < 0.985
