"""Estimate pass@k without bias (Chen et al. 2021, arXiv 2107.03374)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.errors import UsageError

EXACT = 500  # samples: with more, binomial coefficients are computed as logarithms


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
    return _draw_chance(n, c, k, k)


def majority_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that most of k samples, drawn from n with c right, are right.

    A tie counts half. This is what a vote among k samples gets if right ones agree and wrong ones
    do too; wrong ones usually differ from each other, so a real vote does at least as well.
    """
    _check(n, c, k, "majority@")
    return math.fsum(
        _draw_chance(n, c, k, right) * (0.5 if 2 * right == k else 1.0)
        for right in range((k + 1) // 2, min(c, k) + 1)
    )


def _draw_chance(n: int, c: int, k: int, right: int) -> float:
    """Return the chance that ``right`` of k samples, drawn from n with c right, are right."""
    if right > c or k - right > n - c:
        return 0.0
    if n <= EXACT:
        return math.comb(c, right) * math.comb(n - c, k - right) / math.comb(n, k)
    logs = _log_comb(c, right) + _log_comb(n - c, k - right) - _log_comb(n, k)
    return math.exp(logs)


def _log_comb(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _check(n: int, c: int, k: int, name: str) -> None:
    if n < 1:
        raise UsageError(f"{name}k: needs at least one sample, got n={n}.")
    if not 0 <= c <= n:
        raise UsageError(f"{name}k: the number of correct samples must be in 0..{n}, got c={c}.")
    if not 1 <= k <= n:
        raise UsageError(
            f"{name}{k}: needs 1 <= k <= n, got n={n}. Generate more samples or lower k."
        )
