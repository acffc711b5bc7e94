"""Two runs over the same problems."""

from __future__ import annotations

import math


def sign_test(gained: int, lost: int) -> float:
    """Two-sided exact p-value that ``gained`` against ``lost`` flips are a fair coin's (McNemar)."""
    flips = gained + lost
    if flips == 0:
        return 1.0
    tail = sum(math.comb(flips, i) for i in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / 2**flips)
