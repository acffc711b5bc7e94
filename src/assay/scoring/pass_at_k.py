"""Estimate pass@k without bias (Chen et al. 2021, arXiv 2107.03374)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.errors import UsageError


@dataclass(frozen=True, slots=True)
class Tally:
    """Count one problem's judged samples (``n``, without invalid ones) and those that passed."""

    task_id: str
    n: int
    passed: int
    cluster: str | None = None  # the original that the problem derives from; none: its own


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that k of n samples (c right) contain a right one.

    This is ``1 - C(n-c, k) / C(n, k)``, summed in log space over the shorter of two equal products,
    ``prod(1 - c/(n-j), j < k)`` and ``prod(1 - k/(n-j), j < c)``, so that nothing overflows. It is
    finished with ``expm1``, so that a tiny chance does not cancel to zero.
    """
    _check(n, c, k, "pass@")
    if c == 0:
        return 0.0
    if n - c < k:
        return 1.0
    terms, other = min(c, k), max(c, k)
    return -math.expm1(math.fsum(math.log1p(-other / (n - j)) for j in range(terms)))


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Return the chance that all of k samples, drawn from n with c right, are right (pass^k)."""
    _check(n, c, k, "pass^")
    return math.comb(c, k) / math.comb(n, k)


def majority_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that most of k samples, drawn from n with c right, are right.

    A tie counts half. This is what a vote among k samples gets if right ones agree and wrong ones
    do too; wrong ones usually differ from each other, so a real vote does at least as well.
    """
    _check(n, c, k, "majority@")
    ways = sum(
        math.comb(c, right) * math.comb(n - c, k - right) * (1 if 2 * right == k else 2)
        for right in range((k + 1) // 2, min(c, k) + 1)
    )
    return ways / (2 * math.comb(n, k))


def _check(n: int, c: int, k: int, name: str) -> None:
    if n < 1:
        raise UsageError(f"{name}k: needs at least one sample, got n={n}.")
    if not 0 <= c <= n:
        raise UsageError(f"{name}k: the number of correct samples must be in 0..{n}, got c={c}.")
    if not 1 <= k <= n:
        raise UsageError(
            f"{name}{k}: needs 1 <= k <= n, got n={n}. Generate more samples or lower k."
        )
