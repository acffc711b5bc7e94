"""Two runs over the same problems."""

from __future__ import annotations

import math


def sign_test(gained: int, lost: int) -> float:
    """Exact two-sided p-value (McNemar) that these flips are a fair coin's."""
    flips = gained + lost
    if flips == 0:
        return 1.0
    tail = sum(math.comb(flips, i) for i in range(min(gained, lost) + 1))
    return min(1.0, tail / (1 << (flips - 1)))
