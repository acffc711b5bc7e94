"""Compute intervals for a mean over problems."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.scoring.distributions import beta_quantile, student_t_quantile, two_sided_z

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL = 0.95
VERSION = 1  # of every method here and of every test; a change of a method's results raises it


@dataclass(frozen=True, slots=True)
class Interval:
    """The two ends of an interval, and how they were computed."""

    low: float
    high: float
    level: float
    method: str
    version: int = VERSION

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


def wilson(p: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Return Wilson's score interval for a proportion ``p`` seen in ``n`` independent trials."""
    z = two_sided_z(level)
    z2 = z * z
    centre = p + z2 / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    scale = 1 + z2 / n
    # Rounding would leave 5e-17 instead of 0.
    low = max(0.0, (centre - half) / scale) if p > 0 else 0.0
    high = min(1.0, (centre + half) / scale) if p < 1 else 1.0
    return low, high


def clopper_pearson(passed: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the exact interval of a proportion, which covers at least ``level`` always."""
    tail = (1 - level) / 2
    low = beta_quantile(tail, passed, n - passed + 1) if passed else 0.0
    high = beta_quantile(1 - tail, passed + 1, n - passed) if passed < n else 1.0
    return low, high


def clustered_wilson(
    values: Sequence[float], samples: int, level: float = LEVEL
) -> tuple[float, float]:
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
        return wilson(p, n, level)
    variance = math.fsum((v - p) ** 2 for v in values) / (n - 1)
    return effective_wilson(p, variance / n, n, samples, level)


def effective_wilson(
    p: float, variance: float, clusters: int, samples: int, level: float = LEVEL
) -> tuple[float, float]:
    """Return Wilson's interval at the effective size that a mean's ``variance`` implies."""
    return wilson(p, effective_size(p, variance, clusters, samples, level), level)


def effective_size(
    p: float, variance: float, clusters: int, samples: int, level: float = LEVEL
) -> float:
    """Return how many independent samples a mean ``p`` with this ``variance`` is worth."""
    if variance <= 0 or clusters < 2:
        # All clusters alike: nothing shows that samples count for more than their cluster.
        return clusters
    z, t = two_sided_z(level), student_t_quantile(0.5 + level / 2, clusters - 1)
    return min(samples, p * (1 - p) / variance * (z / t) ** 2)
