"""Compute probabilities and quantiles that the statistics need, with the standard library alone."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from statistics import NormalDist

_NORMAL = NormalDist()
_TINY = 1e-300
_STEPS = 10_000  # of the continued fraction; it needs about sqrt(max(a, b))


def normal_cdf(z: float) -> float:
    """Return the probability that a standard normal variable is at most ``z``."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


@functools.cache
def two_sided_z(level: float) -> float:
    """Return z for which a standard normal variable is within +-z with probability ``level``."""
    return _NORMAL.inv_cdf(0.5 + level / 2)


def normal_quantile(p: float) -> float:
    """Return the quantile of the standard normal distribution."""
    return _NORMAL.inv_cdf(p)


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    log_front = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    front = math.exp(log_front)
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(x, a, b) / a
    return 1 - front * _beta_fraction(1 - x, b, a) / b


def _beta_fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1 / _nonzero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / _nonzero(1 + even * d), _nonzero(1 + even / c)
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / _nonzero(1 + odd * d), _nonzero(1 + odd / c)
        value *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return value


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def beta_quantile(p: float, a: float, b: float) -> float:
    """Return the quantile of the beta distribution."""
    return solve(lambda x: beta_cdf(x, a, b) - p, 0.0, 1.0)


def binomial_cdf(k: int, n: int, p: float) -> float:
    """Return the probability of at most ``k`` successes in ``n`` trials."""
    if k < 0:
        return 0.0
    return 1.0 if k >= n else beta_cdf(1 - p, n - k, k + 1)


def binomial_pmf(k: int, n: int, p: float) -> float:
    """Return the probability of exactly ``k`` successes in ``n`` trials."""
    if not 0 < p < 1:
        return float(k == (n if p >= 1 else 0))
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))


def student_t_cdf(t: float, freedom: float) -> float:
    """Return the probability that Student's t is at most ``t``."""
    tail = beta_cdf(freedom / (freedom + t * t), freedom / 2, 0.5) / 2
    return tail if t < 0 else 1 - tail


@functools.cache
def student_t_quantile(p: float, freedom: float) -> float:
    """Return the quantile of Student's t, by bisection."""
    if p < 0.5:
        return -student_t_quantile(1 - p, freedom)
    high = 2.0
    while student_t_cdf(high, freedom) < p:
        high *= 2
    # In the tail, so that a probability close to 1 loses no digits.
    tail = 1 - p
    return solve(
        lambda t: tail - beta_cdf(freedom / (freedom + t * t), freedom / 2, 0.5) / 2, 0.0, high
    )


def solve(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of an increasing function between two points, by bisection."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if function(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
