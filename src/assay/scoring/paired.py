"""Compare two runs over the same problems."""

from __future__ import annotations


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
