"""Compare what a program printed with what is expected. Each way to compare has a name."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation

RELATIVE = 1e-5  # of numbers, where the comparison is tolerant


def is_exact(printed: str, expected: str) -> bool:
    """Return whether both are equal, except for newlines at the end."""
    return printed.rstrip("\n") == expected.rstrip("\n")


def is_same_as_livecodebench(printed: str, expected: str) -> bool:
    """Return whether the lines are equal without the white space around them, or as decimals."""
    return _lines_match(printed, expected, _same_decimals)


def is_close(printed: str, expected: str) -> bool:
    """Return whether the lines are equal, whatever their case, or have numbers that are close."""
    return _lines_match(printed.casefold(), expected.casefold(), _close_words)


COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "livecodebench": is_same_as_livecodebench,
    "tolerant": is_close,
    "exact": is_exact,
}


def _lines_match(printed: str, expected: str, match: Callable[[str, str], bool]) -> bool:
    found, wanted = _lines(printed), _lines(expected)
    if len(found) != len(wanted):
        return False
    return all(a == b or match(a, b) for a, b in zip(found, wanted, strict=True))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _same_decimals(printed: str, expected: str) -> bool:
    """Return whether all words are numbers with equal values, without any tolerance."""
    try:
        # The expected line is the benchmark's: a program cannot make it long.
        wanted = [Decimal(word) for word in expected.split()]
        found = [Decimal(word) for word in printed.split(None, len(wanted))]
        return found == wanted
    except InvalidOperation:
        return False


def _close_words(printed: str, expected: str) -> bool:
    wanted = expected.split()
    found = printed.split(None, len(wanted))
    if len(found) != len(wanted):
        return False
    return all(a == b or _is_close_number(a, b) for a, b in zip(found, wanted, strict=True))


def _is_close_number(printed: str, expected: str) -> bool:
    try:
        found, wanted = float(printed), float(expected)
    except ValueError:
        return False
    if math.isfinite(found) and math.isfinite(wanted):
        return math.isclose(found, wanted, rel_tol=RELATIVE)
    return _same_decimals(printed, expected)  # above all floats, every number would be the same
