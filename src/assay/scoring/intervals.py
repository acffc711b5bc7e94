"""95 % intervals for a mean over problems."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Z95 = 1.959963984540054


def wilson(p: float, n: float) -> tuple[float, float]:
    """Wilson's score interval for a proportion ``p`` seen in ``n`` independent trials."""
    z2 = Z95 * Z95
    centre = p + z2 / (2 * n)
    half = Z95 * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    scale = 1 + z2 / n
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def clustered_wilson(values: Sequence[float]) -> tuple[float, float]:
    """Interval of the mean of per-problem values in [0, 1], the problem being the cluster.

    Wilson's interval at the effective sample size ``p(1-p) / SE^2`` with the between-problem
    standard error (Dean and Pagano 2015). Samples of one problem are not independent, so n
    samples of N problems count for at least N and at most n*N trials. With one sample a problem
    it is exactly Wilson's; unlike a normal interval it does not collapse at 0 % and 100 %.
    """
    n = len(values)
    p = math.fsum(values) / n
    variance = math.fsum((v - p) ** 2 for v in values) / n
    if variance <= 0:
        # All problems alike: nothing shows that samples count for more than their problem.
        return wilson(p, n)
    return wilson(p, max(n, p * (1 - p) / variance * n))
