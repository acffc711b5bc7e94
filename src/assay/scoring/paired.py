"""Compare two runs with one sample per problem: the exact test and intervals of a 2x2 table."""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.scoring.distributions import normal_cdf, solve, two_sided_z
from assay.scoring.intervals import LEVEL, wilson


@dataclass(frozen=True, slots=True)
class PairedTable:
    """Count problems by the verdicts of A and B: passed by both, gained, lost, by neither."""

    both: float
    gained: float  # passed by B alone
    lost: float  # passed by A alone
    neither: float

    @property
    def n(self) -> float:
        return self.both + self.gained + self.lost + self.neither

    @property
    def difference(self) -> float:
        return (self.gained - self.lost) / self.n


def sign_test(gained: int, lost: int) -> float:
    """Return the exact two-sided p-value (McNemar) that these flips are a fair coin's."""
    flips = gained + lost
    if flips == 0:
        return 1.0
    ways = tail = 1
    for i in range(min(gained, lost)):  # from one binomial coefficient to the next
        ways = ways * (flips - i) // (i + 1)
        tail += ways
    return min(1.0, tail / (1 << (flips - 1)))


def mid_p(gained: int, lost: int) -> float:
    """Return McNemar's mid-p: the exact p-value with half the weight on the flips as they are.

    It is less conservative than the exact test, and exceeds its level rarely and slightly.
    """
    if gained == lost:
        return 1.0
    flips = gained + lost
    return sign_test(gained, lost) - math.comb(flips, gained) / (1 << flips)


def tango(table: PairedTable, level: float = LEVEL) -> tuple[float, float]:
    """Return Tango's score interval of the difference of two paired proportions (1998)."""
    z = two_sided_z(level)
    low = solve(lambda d: z - score_statistic(table, d), -1.0, table.difference)
    high = solve(lambda d: -z - score_statistic(table, d), table.difference, 1.0)
    return low, high


def score_statistic(table: PairedTable, difference: float) -> float:
    """Return Tango's statistic for the hypothesis that the true difference is ``difference``.

    It falls as ``difference`` rises. Its square is McNemar's statistic at 0.
    """
    n, b, c = table.n, table.gained, table.lost
    # The likeliest share of lost problems under the hypothesis is a root of a quadratic.
    linear = -b - c + (2 * n - b + c) * difference
    constant = -c * difference * (1 - difference)
    lost = (math.sqrt(linear * linear - 8 * n * constant) - linear) / (4 * n)
    variance = n * (2 * lost + difference * (1 - difference))
    surprise = b - c - n * difference
    if variance <= 0:
        return math.copysign(math.inf, surprise) if surprise else 0.0
    return surprise / math.sqrt(variance)


def newcombe(table: PairedTable, level: float = LEVEL) -> tuple[float, float]:
    """Return Newcombe's interval of the difference (1998, method 10). It never collapses."""
    a, b, c, d = table.both, table.gained, table.lost, table.neither
    n = table.n
    p_b, p_a = (a + b) / n, (a + c) / n
    (low_b, high_b), (low_a, high_a) = wilson(p_b, n, level), wilson(p_a, n, level)
    phi = _phi(a, b, c, d)
    below, above = p_b - low_b, high_a - p_a
    low = below**2 - 2 * phi * below * above + above**2
    below, above = p_a - low_a, high_b - p_b
    high = above**2 - 2 * phi * below * above + below**2
    # Rounding can make a sum of squares negative when the two runs agree everywhere.
    return table.difference - math.sqrt(max(low, 0)), table.difference + math.sqrt(max(high, 0))


def _phi(a: float, b: float, c: float, d: float) -> float:
    """Return the correlation of the verdicts with Newcombe's continuity correction."""
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    if margins == 0:
        return 0.0
    excess = a * d - b * c
    corrected = max(excess - (a + b + c + d) / 2, 0.0) if excess > 0 else excess
    return corrected / math.sqrt(margins)


def wald_standard_error(table: PairedTable) -> float:
    """Return the plain standard error of the difference. It is 0 without flips."""
    n, b, c = table.n, table.gained, table.lost
    return math.sqrt(b + c - (b - c) ** 2 / n) / n


def equivalence_p_value(difference: float, standard_error: float, margin: float) -> float:
    """Return the p-value of two one-sided tests that the true difference is within ``margin``."""
    if standard_error <= 0:
        return 0.0 if abs(difference) < margin else 1.0
    return normal_cdf(-(margin - abs(difference)) / standard_error)


def score_equivalence_p_value(table: PairedTable, margin: float) -> float:
    """Return the p-value of two one-sided tests with Tango's statistic, which never collapses."""
    below, above = score_statistic(table, -margin), score_statistic(table, margin)
    return max(normal_cdf(-below), normal_cdf(above))
