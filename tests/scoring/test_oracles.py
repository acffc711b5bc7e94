"""Agreement with scipy and statsmodels on random data, to 1e-9."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import numpy
import pytest
from scipy import stats
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from assay.scoring.clusters import standard_error, student_interval
from assay.scoring.comparison import welch_test
from assay.scoring.decisions import holm
from assay.scoring.distributions import (
    beta_cdf,
    beta_quantile,
    binomial_cdf,
    binomial_pmf,
    normal_cdf,
    student_t_cdf,
    student_t_quantile,
)
from assay.scoring.intervals import clopper_pearson, wilson
from assay.scoring.paired import sign_test
from assay.scoring.pass_at_k import majority_at_k, pass_hat_k
from assay.scoring.permutation import DRAWS, sign_flip_test
from assay.scoring.power import critical_flips, sign_test_power

ROUNDS = 60


@pytest.fixture
def draw() -> random.Random:
    return random.Random(20260117)


def close(expected: float) -> object:
    return pytest.approx(float(expected), rel=1e-9, abs=1e-9)


def test_distributions(draw: random.Random) -> None:
    for _ in range(ROUNDS):
        a, b, x = draw.uniform(0.2, 400), draw.uniform(0.2, 400), draw.random()
        assert beta_cdf(x, a, b) == close(stats.beta.cdf(x, a, b))
        assert beta_quantile(x, a, b) == close(stats.beta.ppf(x, a, b))
        t, freedom = draw.gauss(0, 3), draw.choice([1, 2, 3, 10, 163, 499, 10_000])
        assert student_t_cdf(t, freedom) == close(stats.t.cdf(t, freedom))
        p = draw.uniform(0.001, 0.999)
        assert student_t_quantile(p, freedom) == close(stats.t.ppf(p, freedom))
        assert normal_cdf(t) == close(stats.norm.cdf(t))
        n = draw.randint(1, 2000)
        k = draw.randint(0, n)
        assert binomial_cdf(k, n, x) == close(stats.binom.cdf(k, n, x))
        assert binomial_pmf(k, n, x) == close(stats.binom.pmf(k, n, x))


def test_intervals_of_a_proportion(draw: random.Random) -> None:
    for _ in range(ROUNDS):
        n = draw.randint(1, 1140)
        k, level = draw.randint(0, n), draw.choice([0.8, 0.95, 0.99, 1 - 0.05 / 36])
        expected = proportion_confint(k, n, 1 - level, method="wilson")
        assert wilson(k / n, n, level) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        expected = proportion_confint(k, n, 1 - level, method="beta")
        assert clopper_pearson(k, n, level) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_mcnemar(draw: random.Random) -> None:
    for _ in range(ROUNDS):
        gained, lost = draw.randint(0, 80), draw.randint(0, 80)
        found = mcnemar([[5, gained], [lost, 5]], exact=True).pvalue
        assert sign_test(gained, lost) == close(found)


def test_sign_flips(draw: random.Random) -> None:
    for _ in range(20):
        deltas = [Fraction(draw.randint(-10, 10), 10) for _ in range(draw.randint(2, 11))]
        if not any(deltas):
            continue
        expected = stats.permutation_test(
            ([float(d) for d in deltas],), numpy.sum, permutation_type="samples",
            n_resamples=numpy.inf, vectorized=False,
        ).pvalue  # fmt: skip
        found = sign_flip_test(deltas)
        assert (found.method, found.error) == ("sign-flip-exact", None)
        assert found.p_value == close(expected)


def test_sign_flips_of_one_sample_are_mcnemars_test(draw: random.Random) -> None:
    for _ in range(ROUNDS):
        gained, lost = draw.randint(0, 60), draw.randint(0, 60)
        found = sign_flip_test([1] * gained + [-1] * lost + [0] * 100)
        assert found.p_value == close(sign_test(gained, lost))


def test_random_sign_flips_state_their_error(
    draw: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = 0
    for _ in range(8):
        deltas = [Fraction(draw.randint(-9, 10), 10) for _ in range(100)]
        exact = sign_flip_test(deltas)
        with monkeypatch.context() as few:
            few.setattr("assay.scoring.permutation.MOST_WORK", 0)
            estimated, again = sign_flip_test(deltas), sign_flip_test(deltas)
        assert estimated == again  # the seed is fixed
        assert estimated.method == f"sign-flip-random-{DRAWS}"
        assert estimated.error is not None
        outside += not estimated.error[0] <= exact.p_value <= estimated.error[1]
    assert outside == 0


def test_clustered_errors(draw: random.Random) -> None:
    for _ in range(20):
        n = draw.randint(6, 200)
        values = [draw.random() for _ in range(n)]
        clusters = [draw.randrange(max(2, n // 3)) for _ in range(n)]
        groups = numpy.unique(clusters, return_inverse=True)[1]
        model = OLS(values, numpy.ones(n)).fit(
            cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False}
        )
        assert standard_error(values, clusters, corrected=False) == close(model.bse[0])
        assert standard_error(values) == close(stats.sem(values))
        low, high = stats.t.interval(0.95, n - 1, numpy.mean(values), stats.sem(values))
        assert student_interval(values) == (close(low), close(high))


def test_welch(draw: random.Random) -> None:
    for _ in range(ROUNDS):
        a = [draw.random() for _ in range(draw.randint(2, 50))]
        b = [draw.random() ** 2 for _ in range(draw.randint(2, 50))]
        assert welch_test(a, b) == close(stats.ttest_ind(a, b, equal_var=False).pvalue)


def test_holm_and_how_it_compares_with_false_discovery_rates(draw: random.Random) -> None:
    for _ in range(10):
        p_values = [draw.random() ** 3 for _ in range(draw.randint(1, 40))]
        found = holm(p_values)
        assert found == pytest.approx(multipletests(p_values, method="holm")[1], rel=1e-9)
        rates = multipletests(p_values, method="fdr_bh")[1]
        assert all(p >= rate - 1e-12 for p, rate in zip(found, rates, strict=True))
    assert multipletests([0.01, 0.04, 0.03, 0.005], method="fdr_by")[1] == pytest.approx(
        [0.0417, 0.0833, 0.0833, 0.0417], abs=5e-5
    )


def test_power_of_the_sign_test(draw: random.Random) -> None:
    """Against a plain double sum over flips and gains."""
    for _ in range(5):
        n, discordance = draw.randint(5, 60), draw.uniform(0.05, 0.9)
        difference = draw.uniform(0, discordance)
        gain = (1 + difference / discordance) / 2
        expected = 0.0
        for flips in range(n + 1):
            gained = numpy.arange(flips + 1)
            shown = numpy.array([sign_test(int(g), flips - int(g)) <= 0.05 for g in gained])
            chances = stats.binom.pmf(gained, flips, gain)
            expected += stats.binom.pmf(flips, n, discordance) * float((chances * shown).sum())
        assert sign_test_power(n, discordance, difference) == close(expected)


@pytest.mark.parametrize("flips", [*range(0, 30), 999, 1000, 1001, 2500])
def test_critical_flips(flips: int) -> None:
    found = critical_flips(flips)
    assert found < 0 or 2 * stats.binom.cdf(found, flips, 0.5) <= 0.05
    assert flips == 0 or sign_test(found + 1, flips - found - 1) > 0.05


def test_measures_of_k_samples(draw: random.Random) -> None:
    for _ in range(30):
        n = draw.randint(1, 9)
        c, k = draw.randint(0, n), draw.randint(1, n)
        counts = [sum(chosen) for chosen in itertools.combinations([1] * c + [0] * (n - c), k)]
        assert pass_hat_k(n, c, k) == close(sum(x == k for x in counts) / len(counts))
        votes = sum((2 * x > k) + (2 * x == k) / 2 for x in counts) / len(counts)
        assert majority_at_k(n, c, k) == close(votes)


def test_measures_of_many_samples() -> None:
    expected = stats.hypergeom.pmf(7, 2000, 1500, 7)
    assert pass_hat_k(2000, 1500, 7) == pytest.approx(expected, rel=1e-9)
    expected = stats.hypergeom.sf(3, 2000, 1500, 7)
    assert majority_at_k(2000, 1500, 7) == pytest.approx(expected, rel=1e-9)
