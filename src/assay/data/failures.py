"""Say in words why a program failed, from the data that its verdict carries.

Everyone who writes or prints such words uses this: reports, exports, notes about references. It
stands alone at the bottom because all of them may import it.
"""

from __future__ import annotations

from assay.types import Verdict

LONGEST = 500  # characters, where values are compared


def explain_failure(verdict: Verdict) -> str:
    """Return a verdict's detail, with what was expected and what the program returned or printed.

    Verdicts of earlier versions have all of it in their detail.
    """
    if verdict.actual is None:
        return verdict.detail
    return ": ".join(filter(None, (verdict.detail, _compare(verdict))))[:LONGEST]


def _compare(verdict: Verdict) -> str:
    expected, actual = verdict.expected, verdict.actual
    if expected is None:
        return f"{verdict.call} gave {actual}"
    if verdict.input is not None:
        return f"expected {expected!r}, printed {repr(actual) if actual else 'nothing'}"
    difference = f" ({verdict.difference})" if verdict.difference else ""
    return f"expected {expected}, got {actual}{difference}"
