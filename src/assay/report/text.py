"""Format scores as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.borders.printable import CELL_LIMIT, clean_line, quantity
from assay.runs.result import Result, ScoreResult
from assay.scoring import Coverage
from assay.types import Estimate

LEFT_OUT_NOTE = "(in brackets: the score if invalid samples, which are left out, count as failed)"


def percent(value: float | None) -> str:
    """Return ``12.3 %``, or ``-`` if there is no value."""
    return "-" if value is None else f"{100 * value:.1f} %"


def percent_of(estimate: Estimate | None) -> str:
    """Return an estimate's value as ``12.3 %``, or ``-`` if there is none."""
    return percent(estimate.value if estimate else None)


def interval(estimate: Estimate | None) -> str:
    """Return ``[8.0, 18.1]`` in per cent, or nothing."""
    return f"[{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]" if estimate else ""


def level(estimate: Estimate) -> str:
    """Return the level of an estimate's interval as ``95 %``."""
    return f"{100 * estimate.level:g} %"


def describe_left_out(results: ScoreResult, k: int) -> str:
    """Return ``; 20.0 % with the 8 left-out samples counted as failed``, or nothing."""
    if not results.invalid:
        return ""
    samples = quantity(results.invalid, "left-out sample")
    if results.left_out_as_failed is None:  # by an earlier version
        return f"; {samples}"
    shown = percent_of(results.left_out_as_failed.pass_at.get(k))
    return f"; {shown} with the {samples} counted as failed"


def benchmark_name(result: Result) -> str:
    """Return ``humaneval``, or ``humaneval[:10]`` if only some problems were selected."""
    return f"{result.benchmark}{result.config.problem_selection}"


def describe_gap(coverage: Coverage | None) -> str:
    """Return ``50 of 164 problems judged`` if a result is incomplete, or nothing."""
    if coverage is None or coverage.complete:  # none: by an earlier version
        return ""
    problems = f"{coverage.judged_problems} of {coverage.selected_problems} problems"
    if coverage.samples == coverage.selected_problems:
        return f"{problems} judged"
    samples = f"{coverage.judged_samples} of {coverage.samples} samples"
    return f"{samples} judged (all samples of {problems})"


def score(results: ScoreResult, k: int) -> str:
    """Return a score as ``100.0 % (20.0 %)``. ``LEFT_OUT_NOTE`` explains the brackets."""
    shown = percent_of(results.pass_at.get(k))
    if results.left_out_as_failed is None:
        return shown
    return f"{shown} ({percent_of(results.left_out_as_failed.pass_at.get(k))})"


def counts(numbers: Mapping[str, int]) -> str:
    """Return ``wrong-answer 80, exception 12``, the most frequent first."""
    ordered = sorted(numbers.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {number}" for name, number in ordered)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line per row with aligned columns. Lines are never wrapped, so that grep works."""
    cells = [[clean_line(cell, CELL_LIMIT) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
