"""Published and independently computed answers of every method."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from assay.scoring import Tally, pass_at_k, wilson
from assay.scoring.clusters import standard_error
from assay.scoring.comparison import compare_pairs
from assay.scoring.decisions import decide, holm
from assay.scoring.distributions import beta_quantile
from assay.scoring.intervals import Interval, clopper_pearson
from assay.scoring.paired import (
    PairedTable,
    equivalence_p_value,
    mid_p,
    newcombe,
    sign_test,
    tango,
    wald_standard_error,
)
from assay.scoring.permutation import sign_flip_test
from assay.scoring.power import detectable_difference, problems_needed, samples_needed
from assay.scoring.sequential import flips_e_value


@pytest.mark.parametrize(
    ("passed", "n", "interval"),
    [
        (0, 164, (0, 0.022887)),
        (10, 164, (0.033455, 0.108593)),
        (140, 164, (0.791483, 0.899645)),
        (143, 164, (0.812175, 0.914701)),
        (164, 164, (0.977113, 1)),
        (381, 500, (0.722764, 0.797241)),
    ],
)
def test_wilson(passed: int, n: int, interval: tuple[float, float]) -> None:
    assert wilson(passed / n, n) == pytest.approx(interval, abs=1e-6)


def test_exact_and_bayesian_intervals() -> None:
    assert clopper_pearson(140, 164) == pytest.approx((0.790124, 0.903931), abs=1e-6)
    jeffreys = [beta_quantile(p, 140.5, 24.5) for p in (0.025, 0.975)]
    assert jeffreys == pytest.approx([0.793574, 0.901397], abs=1e-6)
    uniform = [beta_quantile(p, 141, 25) for p in (0.025, 0.975)]
    assert uniform == pytest.approx([0.791348, 0.899484], abs=1e-6)


FLIPS = [(10, 3), (8, 5), (3, 0), (5, 0), (6, 0), (20, 8), (1, 7)]


def test_mcnemar_exact_and_mid_p() -> None:
    exact = [0.092285, 0.581055, 0.25, 0.0625, 0.03125, 0.035698, 0.070312]
    assert [sign_test(*flips) for flips in FLIPS] == pytest.approx(exact, abs=1e-6)
    middle = [0.057373, 0.423950, 0.125, 0.03125, 0.015625, 0.024120, 0.039063]
    assert [mid_p(*flips) for flips in FLIPS] == pytest.approx(middle, abs=1e-6)


def test_paired_intervals_of_fagerland_lydersen_and_laake() -> None:
    table = PairedTable(1, 1, 7, 12)  # 2014, airway hyper-responsiveness before and after
    assert tango(table) == pytest.approx((-0.517, -0.026), abs=5e-4)
    assert newcombe(table) == pytest.approx((-0.507, -0.026), abs=5e-4)
    assert sign_test(1, 7) == pytest.approx(0.0703, abs=5e-5)
    assert mid_p(1, 7) == pytest.approx(0.0391, abs=5e-5)


def test_paired_interval_of_newcombe() -> None:
    table = PairedTable(36, 12, 2, 0)  # 1998, table III
    assert table.difference == pytest.approx(0.2)
    assert newcombe(table) == pytest.approx((0.0569, 0.3404), abs=5e-5)


def test_only_the_wald_interval_calls_ten_against_three_significant() -> None:
    table = PairedTable(130, 10, 3, 21)
    assert newcombe(table) == pytest.approx((-0.0024, 0.0902), abs=5e-5)
    assert tango(table) == pytest.approx((-0.0005, 0.0932), abs=5e-5)
    error = 1.959964 * wald_standard_error(table)
    wald = (table.difference - error, table.difference + error)
    assert wald == pytest.approx((0.0001, 0.0853), abs=5e-5)


def test_an_interval_without_flips_does_not_collapse() -> None:
    table = PairedTable(135, 0, 0, 29)
    assert newcombe(table) == pytest.approx((-0.0189, 0.0189), abs=5e-5)
    assert wald_standard_error(table) == 0
    pairs = [(Tally(str(i), 1, int(i < 135)), Tally(str(i), 1, int(i < 135))) for i in range(164)]
    found = compare_pairs(pairs)
    assert (found.interval.low, found.interval.high) == pytest.approx(newcombe(table))
    assert found.decision == "equivalent"


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_problems_of_miller() -> None:
    omega, sigma = 1 / 9, 1 / 6
    assert problems_needed(0.03, omega) == pytest.approx(969.0, abs=0.05)
    assert problems_needed(0.03, omega, 2 * sigma) == pytest.approx(3876.0, abs=0.05)
    assert problems_needed(0.03, omega, 2 * sigma / 10) == pytest.approx(1259.7, abs=0.05)
    assert samples_needed(0.03, 1260, omega, 2 * sigma) == 10
    assert samples_needed(0.03, 968, omega, 2 * sigma) is None


@pytest.mark.parametrize(
    ("problems", "discordance", "difference"),
    [
        (164, 0.10, 0.0704),
        (164, 0.05, 0.0489),
        (378, 0.15, 0.0573),
        (500, 0.12, 0.0446),
        (1140, 0.20, 0.0378),
    ],
)
def test_smallest_detectable_difference(
    problems: int, discordance: float, difference: float
) -> None:
    assert detectable_difference(problems, discordance) == pytest.approx(difference, abs=1e-4)


def test_sign_flips() -> None:
    deltas = [Fraction(n, 10) for n in (2, 3, -1, 4, 1, -2, 5, 3)]
    assert sign_flip_test(deltas).p_value == 24 / 256


def test_the_mean_decides_and_not_the_signs() -> None:
    """Ten small gains and three large losses: the sign test on shares would point to B."""
    deltas = [Fraction(1, 10)] * 10 + [Fraction(-9, 10)] * 3
    assert sign_test(10, 3) == pytest.approx(0.092, abs=5e-4)
    assert sign_flip_test(deltas).p_value == pytest.approx(0.258, abs=5e-4)


def test_clustered_standard_error() -> None:
    values = [1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 1]
    clusters = [i // 3 for i in range(12)]
    assert standard_error(values, clusters, corrected=False) == pytest.approx(0.138193, abs=1e-6)
    assert standard_error(values, clusters) == pytest.approx(0.159571, abs=1e-6)
    assert standard_error(values) == pytest.approx(0.148647, abs=1e-6)


def test_e_values_of_flips() -> None:
    flips = [(6, 0), (8, 0), (10, 0), (10, 3), (30, 10)]
    expected = [9.142857, 28.4444, 93.0909, 2.0460, 31.6369]
    assert [flips_e_value(*one) for one in flips] == pytest.approx(expected, abs=5e-5)
    assert flips_e_value(7, 0) == 16.0 < 1 / 0.05 < flips_e_value(8, 0)
    assert flips_e_value(5000, 100) == math.inf


@pytest.mark.parametrize(
    ("problems", "flips", "margin", "p"),
    [
        (164, 1, 0.02, 0.0102),
        (164, 3, 0.02, 0.0903),
        (1140, 30, 0.02, 0.0016),
        (378, 5, 0.03, 0.0002),
    ],
)
def test_two_one_sided_tests(problems: int, flips: int, margin: float, p: float) -> None:
    table = PairedTable(problems - 2 * flips, flips, flips, 0)
    found = equivalence_p_value(0.0, wald_standard_error(table), margin)
    assert found == pytest.approx(p, abs=5e-5)


@pytest.mark.parametrize(
    ("n", "c", "k", "value"),
    [(10, 1, 5, 0.5), (10, 3, 5, 0.916667), (100, 5, 10, 0.416248), (200, 1, 100, 0.5)],
)
def test_pass_at_k(n: int, c: int, k: int, value: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(
    ("low", "high", "decision"),
    [
        (0.001, 0.05, "better"),
        (-0.05, -0.001, "worse"),
        (-0.0199, 0.0199, "equivalent"),
        (-0.02, 0.01, "undecided"),
        (-0.05, 0.01, "undecided"),
        (0.001, 0.01, "better"),
    ],
)
def test_one_interval_decides(low: float, high: float, decision: str) -> None:
    assert decide(Interval(low, high, 0.95, "any"), 0.02) == decision
