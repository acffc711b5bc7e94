"""Compute 95 % intervals for a mean over problems."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Z95 = 1.959963984540054


def wilson(p: float, n: float) -> tuple[float, float]:
    """Return Wilson's score interval for a proportion ``p`` seen in ``n`` independent trials."""
    z2 = Z95 * Z95
    centre = p + z2 / (2 * n)
    half = Z95 * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    scale = 1 + z2 / n
    # Rounding would leave 5e-17 instead of 0.
    low = max(0.0, (centre - half) / scale) if p > 0 else 0.0
    high = min(1.0, (centre + half) / scale) if p < 1 else 1.0
    return low, high


def clustered_wilson(values: Sequence[float], samples: int) -> tuple[float, float]:
    """Return the interval of the mean of per-problem values in [0, 1] from ``samples`` samples.

    With one sample per problem it is Wilson's. With several, samples of one problem are not
    independent: Wilson's interval at the effective sample size ``p(1-p) / SE^2`` with the
    between-problem standard error, made smaller for few problems by Student's t, and never more
    than the number of samples (Dean and Pagano 2015; Korn and Graubard 1998). Unlike a normal
    interval it does not collapse at 0 % and 100 %.
    """
    n = len(values)
    p = math.fsum(values) / n
    if samples == n or n == 1:
        return wilson(p, n)
    variance = math.fsum((v - p) ** 2 for v in values) / (n - 1)
    if variance <= 0:
        # All problems alike: nothing shows that samples count for more than their problem.
        return wilson(p, n)
    effective = p * (1 - p) / variance * n * (Z95 / student_t_975(n - 1)) ** 2
    return wilson(p, min(samples, effective))


@functools.cache
def student_t_975(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t, by bisection over its integral."""
    power: float = -(freedom + 1) / 2
    log_scale = math.lgamma(-power) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2

    def integral(end: float, steps: int = 2000) -> float:  # Simpson's rule from 0
        width = end / steps
        heights = [math.pow(1 + (i * width) ** 2 / freedom, power) for i in range(steps + 1)]
        weighted = heights[0] + heights[-1] + 4 * sum(heights[1::2]) + 2 * sum(heights[2:-1:2])
        return math.exp(log_scale) * weighted * width / 3

    low, high = Z95, 13.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if integral(middle) < 0.475 else (low, middle)
    return (low + high) / 2
