"""Compute how many problems and samples show a difference, and which difference they show."""

from __future__ import annotations

import functools
import math

from assay.scoring.decisions import ALPHA
from assay.scoring.distributions import binomial_cdf, binomial_pmf, normal_cdf, normal_quantile

POWER = 0.8
MOST_PROBLEMS = 1_000_000
MOST_EXACT = 20_000
# What is assumed of two models where no run measures it. The share of problems that only one of
# them passes is that of checkpoints of one training. Pass rates are uniform over the problems, as
# in Miller's example: their variance is 1/12, and one sample's is 1/6 on average.
USUAL_DISCORDANCE = 0.10
CORRELATION = 0.8  # of two models' pass rates per problem
UNRELATED = 2 * (1 - CORRELATION)
PROBLEM_NOISE = UNRELATED / 12  # variance of the true difference between problems
SAMPLING_NOISE = 2 / 6  # variance of one sample of each model, added


def problems_needed(
    difference: float,
    problem_variance: float,
    sampling_variance: float = 0.0,
    power: float = POWER,
    alpha: float = ALPHA,
) -> float:
    """Return the number of problems that shows a difference (Miller 2024, arXiv 2411.00640).

    ``problem_variance`` is that of the true difference between problems. ``sampling_variance`` is
    the sum over both models of one sample's variance, divided by its samples per problem.
    """
    return (_z(power, alpha) / difference) ** 2 * (problem_variance + sampling_variance)


def samples_needed(
    difference: float,
    problems: int,
    problem_variance: float,
    sampling_variance: float,
    power: float = POWER,
    alpha: float = ALPHA,
) -> int | None:
    """Return the samples per problem that show a difference, or None if no number does.

    ``sampling_variance`` is that of one sample of each model, added.
    """
    room = problems * (difference / _z(power, alpha)) ** 2 - problem_variance
    return max(1, math.ceil(sampling_variance / room - 1e-9)) if room > 0 else None


def _z(power: float, alpha: float) -> float:
    return normal_quantile(1 - alpha / 2) + normal_quantile(power)


@functools.cache
def critical_flips(flips: int, alpha: float = ALPHA) -> int:
    """Return the most flips of the rarer kind with which the exact test is significant, or -1."""
    tail, ways, k = 0, 1, 0
    limit = alpha * 2.0 ** min(flips, 1000) / 2 if flips <= 1000 else None
    if limit is None:
        return _critical_by_cdf(flips, alpha)
    while True:
        tail += ways
        if tail > limit or 2 * k >= flips:
            return k - 1
        ways = ways * (flips - k) // (k + 1)
        k += 1


def _critical_by_cdf(flips: int, alpha: float) -> int:
    low, high = -1, flips // 2
    while low < high:
        middle = (low + high + 1) // 2
        if 2 * binomial_cdf(middle, flips, 0.5) <= alpha:
            low = middle
        else:
            high = middle - 1
    return low


def sign_test_power(
    problems: int, discordance: float, difference: float, alpha: float = ALPHA
) -> float:
    """Return the probability that the two-sided sign test (McNemar) shows a difference.

    It is exact for up to 20,000 problems. For more it is a normal approximation, which the number
    of problems that are needed confirms to 1 %; to count exactly would take minutes.

    ``discordance`` is the share of problems that only one of the two models passes. A difference
    needs at least as many.
    """
    discordance = max(discordance, abs(difference))
    if discordance == 0:
        return 0.0
    if problems > MOST_EXACT:
        return _approximate_power(problems, discordance, abs(difference), alpha)
    gained = min(1.0, (1 + abs(difference) / discordance) / 2)
    spread = 9 * math.sqrt(problems * discordance * (1 - discordance)) + 9
    first = max(0, math.floor(problems * discordance - spread))
    last = min(problems, math.ceil(problems * discordance + spread))
    shown = 0.0
    for flips in range(first, last + 1):
        most = critical_flips(flips, alpha)
        if most < 0:
            continue
        chance = binomial_cdf(most, flips, 1 - gained) + binomial_cdf(most, flips, gained)
        shown += binomial_pmf(flips, problems, discordance) * chance
    return min(1.0, shown)


def _approximate_power(problems: int, discordance: float, difference: float, alpha: float) -> float:
    """Return the power by the normal distribution, with the correction for counts."""
    spread = math.sqrt(max(0.0, discordance - difference * difference))
    excess = math.sqrt(problems) * (difference - 1 / problems)
    excess -= normal_quantile(1 - alpha / 2) * math.sqrt(discordance)
    if spread == 0:
        return float(excess > 0)
    return normal_cdf(excess / spread)


@functools.cache
def detectable_difference(
    problems: int, discordance: float, power: float = POWER, alpha: float = ALPHA
) -> float | None:
    """Return the smallest difference that the exact sign test shows with this power.

    None means that not even the largest difference is shown. The result is exact to 0.01 points.
    """
    if sign_test_power(problems, discordance, 1.0, alpha) < power:
        return None
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        if sign_test_power(problems, discordance, middle, alpha) < power:
            low = middle
        else:
            high = middle
    return high


def usually_detectable(problems: int, samples: int) -> float | None:
    """Return the smallest difference that so many samples per problem show between usual models.

    None means that not even the largest difference is shown.
    """
    if samples == 1:
        return detectable_difference(problems, USUAL_DISCORDANCE)
    error = math.sqrt((PROBLEM_NOISE + SAMPLING_NOISE / samples) / problems)
    return min(1.0, detectable_by_error(error))


def problems_for_sign_test(
    difference: float, discordance: float, power: float = POWER, alpha: float = ALPHA
) -> int | None:
    """Return the number of problems from which the exact sign test has this power.

    The power is a saw-tooth in the number of problems; the result is a number at which it is
    reached, found by bisection from the normal approximation. None: more than a million.
    """
    discordance = max(discordance, abs(difference))
    low, high = 1, 64
    while sign_test_power(high, discordance, difference, alpha) < power:
        low, high = high, high * 2
        if high > MOST_PROBLEMS:
            return None
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        if sign_test_power(middle, discordance, difference, alpha) < power:
            low = middle
        else:
            high = middle
    return high


def detectable_by_error(standard_error: float, power: float = POWER, alpha: float = ALPHA) -> float:
    """Return the smallest difference that an estimate with this standard error shows."""
    return _z(power, alpha) * standard_error
