"""Decide GO, NO-GO or INCONCLUSIVE from intervals and bounds.

Pure functions, which stand alone because contracts prove them (contracts/gate.yaml).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

Decision = Literal["GO", "NO-GO", "INCONCLUSIVE"]
EXIT_CODES: dict[Decision, int] = {"GO": 0, "NO-GO": 1, "INCONCLUSIVE": 3}


def at_least(low: float, high: float, bound: float) -> Decision:
    """Decide whether the value between ``low`` and ``high`` is ``bound`` or more."""
    if math.isnan(low) or math.isnan(high):
        return "NO-GO"
    if low >= bound:
        return "GO"
    return "NO-GO" if high < bound else "INCONCLUSIVE"


def at_most(low: float, high: float, bound: float) -> Decision:
    """Decide whether the value is ``bound`` or less."""
    return at_least(-high, -low, -bound)


def overall(decisions: Iterable[Decision]) -> Decision:
    """Return NO-GO if any decision is that, and GO only if all are, and there is one."""
    kinds = set(decisions)
    if "NO-GO" in kinds:
        return "NO-GO"
    return "GO" if kinds == {"GO"} else "INCONCLUSIVE"
