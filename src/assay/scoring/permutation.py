"""Test by flipping signs whether the mean of paired differences is zero."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from assay.scoring.intervals import VERSION, clopper_pearson

DRAWS = 19_999
SEED = 20_260_101
MOST_WORK = 500_000_000  # bytes that the exact test may move: about half a second


@dataclass(frozen=True, slots=True)
class Significance:
    """The p-value of a test, and how it was computed.

    ``error`` holds the ends of a 99 % interval of the p-value if that was estimated by random
    draws, or None if it is exact.
    """

    p_value: float
    method: str
    error: tuple[float, float] | None = None
    version: int = VERSION


def sign_flip_test(deltas: Sequence[Fraction | int]) -> Significance:
    """Test whether differences (one per problem or cluster) are symmetric about zero, two-sided.

    Every difference could as well have the other sign if the models were exchangeable. The p-value
    is the share of sign choices whose sum is at least as far from zero. It is exact where counting
    them all is feasible, otherwise estimated from ``DRAWS`` random choices with a fixed seed.
    """
    numerators = _numerators(deltas)
    if not numerators:
        return Significance(1.0, "sign-flip-exact")
    steps = [abs(number) for number in numerators]
    slot = len(steps) // 8 + 1  # bytes: holds up to 2^m
    if len(steps) * (sum(steps) + 1) * slot <= MOST_WORK:
        count = _count_extreme(steps, abs(sum(numerators)), slot)
        return Significance(float(Fraction(count, 1 << len(steps))), "sign-flip-exact")
    return _draw_extreme(steps, abs(sum(numerators)))


def _numerators(deltas: Sequence[Fraction | int]) -> list[int]:
    """Return the differences that are not zero as whole numbers over one denominator."""
    changed = [Fraction(delta) for delta in deltas if delta]
    common = math.lcm(*(delta.denominator for delta in changed))
    whole = [int(delta * common) for delta in changed]
    divisor = math.gcd(*whole) or 1
    return [number // divisor for number in whole]


def _count_extreme(steps: Sequence[int], observed: int, slot: int) -> int:
    """Count the sign choices whose sum is at least ``observed`` from zero.

    The polynomial prod(1 + x^step) has as coefficients how many choices of positive signs have each
    sum. It is one large integer with ``slot`` bytes per coefficient, so that a factor costs one
    shift and one addition.
    """
    total = sum(steps)
    packed = 1
    for step in steps:
        packed += packed << (8 * slot * step)
    data = packed.to_bytes((total + 1) * slot, "little")
    # The sum of signs is 2 * positive - total; by symmetry one tail is enough.
    last = (total - observed) // 2
    tail = sum(int.from_bytes(data[i * slot : (i + 1) * slot], "little") for i in range(last + 1))
    return min(2 * tail, 1 << len(steps))


def _draw_extreme(steps: Sequence[int], observed: int) -> Significance:
    draw = random.Random(SEED)
    tables = [_byte_sums(steps[i : i + 8]) for i in range(0, len(steps), 8)]
    total, extreme = sum(steps), 0
    for _ in range(DRAWS):
        choice = draw.randbytes(len(tables))
        positive = sum(table[byte] for table, byte in zip(tables, choice, strict=True))
        extreme += abs(2 * positive - total) >= observed
    # The data itself is one of the choices, so that the p-value is never 0.
    p_value = (extreme + 1) / (DRAWS + 1)
    error = clopper_pearson(extreme, DRAWS, level=0.99)
    return Significance(p_value, f"sign-flip-random-{DRAWS}", error)


def _byte_sums(steps: Sequence[int]) -> list[int]:
    """Return the sums of all choices of up to eight steps. Unused bits choose nothing."""
    return [sum(step for i, step in enumerate(steps) if byte >> i & 1) for byte in range(256)]
