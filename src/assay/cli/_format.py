"""How scores look in text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay import codec
from assay.borders.printable import CELL_LIMIT, clean_line
from assay.scoring import Coverage


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def interval(results: dict[str, Any], name: str) -> str:
    """``[8.0, 18.1]`` in per cent, or nothing."""
    found = results.get("intervals", {}).get(name)
    return f"[{100 * found['low']:.1f}, {100 * found['high']:.1f}]" if found else ""


def describe_left_out(results: dict[str, Any], name: str) -> str:
    """Return ``; 20.0 % with the 8 left-out samples counted as failed``, or nothing."""
    if not (number := results["invalid"]):
        return ""
    samples = f"{number} left-out sample{'' if number == 1 else 's'}"
    if "left_out_as_failed" not in results:  # by an earlier version
        return f"; {samples}"
    shown = percent(results["left_out_as_failed"].get(name))
    return f"; {shown} with the {samples} counted as failed"


def benchmark_name(result: dict[str, Any]) -> str:
    """Return ``humaneval``, or ``humaneval[:10]`` if only some problems were selected."""
    selection = (result.get("config") or {}).get("problem_selection") or ""
    return f"{result['benchmark']}{selection}"


def describe_gap(result: dict[str, Any]) -> str:
    """Return ``50 of 164 problems judged`` if a result is incomplete, or nothing."""
    found = result.get("coverage")
    if not found or found["complete"]:  # none: by an earlier version
        return ""
    problems = f"{found['judged_problems']} of {found['selected_problems']} problems"
    if found["samples"] == found["selected_problems"]:
        return f"{problems} judged"
    samples = f"{found['judged_samples']} of {found['samples']} samples"
    return f"{samples} judged (all samples of {problems})"


def describe_coverage(coverage: Coverage) -> dict[str, Any]:
    """Return a coverage as results files have it."""
    return {**codec.to_json(coverage), "complete": coverage.complete}


INCOMPLETE = 3  # exit code: the result is kept, but some problems or samples have no verdict
LEFT_OUT_NOTE = "(in brackets: with the left-out samples, which are invalid, counted as failed)"


def score(results: dict[str, Any], name: str) -> str:
    """Return ``100.0 % (20.0 %)``: ``LEFT_OUT_NOTE`` says what is in brackets, if anything is."""
    shown = percent(results.get(name))
    if "left_out_as_failed" not in results:
        return shown
    return f"{shown} ({percent(results['left_out_as_failed'].get(name))})"


def counts(numbers: dict[str, int]) -> str:
    """``wrong-answer 80, exception 12``, the most frequent first."""
    ordered = sorted(numbers.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {number}" for name, number in ordered)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line per row with aligned columns, whatever the terminal's width, for grep."""
    cells = [[clean_line(cell, CELL_LIMIT) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
