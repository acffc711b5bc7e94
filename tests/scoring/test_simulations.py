"""Simulated coverage of intervals and size of tests. docs/statistics.md has the large table."""

from __future__ import annotations

from typing import Any

import pytest

from simulate_statistics import Scenario, scenarios, simulate, simulate_peeking

SMALL = [
    Scenario(20, 0.1, 1),
    Scenario(164, 0.5, 1, shift=0.3),
    Scenario(20, 0.1, 10),
    Scenario(164, 0.02, 10, shift=0.3),
    Scenario(164, 0.5, 10, clustered=True),
]


@pytest.mark.parametrize("scenario", SMALL, ids=str)
def test_coverage_and_size_in_short(scenario: Scenario) -> None:
    found = simulate(scenario, 120)
    assert found.covered_difference >= 0.89  # 0.95 minus three standard errors
    if scenario.shift == 0:
        assert found.significant <= 0.11
        assert found.claimed <= 0.11


def as_parameter(scenario: Scenario) -> Any:
    large = scenario.problems * scenario.samples >= 1000
    marks = pytest.mark.whole if large else pytest.mark.slow
    return pytest.param(scenario, marks=marks, id=str(scenario))


@pytest.mark.parametrize("scenario", [as_parameter(one) for one in scenarios()])
def test_coverage_and_size(scenario: Scenario) -> None:
    found = simulate(scenario, 400)  # good to about 3.3 points
    few = scenario.problems < 100 or scenario.clustered  # clusters: 41 originals
    assert found.covered_difference >= (0.83 if few else 0.91)
    assert found.covered_score >= (0.86 if few else 0.88)
    if scenario.shift == 0:
        assert found.significant <= 0.085
        assert found.claimed <= 0.085


def test_peeking_makes_few_false_claims_in_short() -> None:
    found = simulate_peeking(0.0, 60)
    assert (found.claimed, found.wrong) == (0.0, 0.0)


@pytest.mark.parametrize(
    "times",
    [pytest.param(1000, marks=pytest.mark.slow), pytest.param(10_000, marks=pytest.mark.whole)],
)
def test_peeking_makes_few_false_claims(times: int) -> None:
    """Look after each of 20 rounds, 10,000 times, at models without a difference."""
    found = simulate_peeking(0.0, times)
    assert found.claimed <= 0.05
    at_the_margin = simulate_peeking(0.02, times // 20)
    assert at_the_margin.wrong <= 0.05
    large = simulate_peeking(0.08, times // 20)
    assert large.claimed >= 0.99
    assert large.rounds < 5
