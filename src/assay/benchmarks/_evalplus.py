"""What HumanEval+ and MBPP+ have in common: inputs as data, and EvalPlus's way to compare.

Expected outputs are what the reference returns. The comparison is that of EvalPlus 0.3.1, so that
honest programs get the same verdicts there and here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay import codec, plain
from assay.types import Cases, Limits, Tests

if TYPE_CHECKING:
    from collections.abc import Callable

# EvalPlus gives every input four times what the reference needs, but at least one second (four in
# its next version), and 4 GB. Ours are CPU seconds.
LIMITS = Limits(cpu_s=100.0, call_cpu_s=4.0, wall_s=200.0, memory_mb=4096)

# Floats are compared with a tolerance from the first float that is expected, if not from the start.
MATCHER = """
import math


def matcher():
    tolerance = ATOL

    def matches(arguments, expected, got):
        nonlocal tolerance
        same = SAME
        if tolerance == 0 and all_floats(expected):
            tolerance = 1e-6
        return same or (tolerance != 0 and type(got) is type(expected) and close(got, expected))

    def close(got, expected):
        if isinstance(expected, (list, tuple)):
            return len(got) == len(expected) and all(map(close, got, expected))
        if got == expected:
            return True
        return abs(got - expected) <= tolerance + 1e-7 * abs(expected)

    return matches


def all_floats(value):
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(item, float) for item in value)
    return isinstance(value, float)
"""
SAME = "got == expected"


def case_tests(
    record: dict[str, Any],
    preamble: str,
    same: str = SAME,
    decoded: Callable[[list[Any]], list[Any]] = lambda arguments: arguments,
) -> Tests:
    """``same`` is an expression that says whether ``got`` is right, but for a tolerance."""
    inputs = {
        group: [plain.encode(decoded(arguments)) for arguments in record[f"{group}_input"]]
        for group in ("base", "plus")
    }
    code = MATCHER.replace("ATOL", repr(record["atol"])).replace("SAME", same)
    cases = Cases(inputs, {}, codec.digest(inputs))
    return Tests(record["entry_point"], code, preamble, "separated", cases)
