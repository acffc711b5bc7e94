"""Draw the plots of a leaderboard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from assay.report.figures.boards import draw_trade_off, problem_shares
from assay.report.figures.comparisons import draw_family
from assay.report.figures.history import draw_runs
from assay.report.leaderboard import Leaderboard, LeaderboardBlock, Row
from assay.report.leaderboard.measures import MEASURES, mark_pareto
from assay.report.pages.figures import WHOLE, figure
from assay.report.pages.sources import Sources
from assay.report.plots import HeatMap, HeatRow, draw_heat_map
from assay.runs import Result, RunEntry, compare_family
from assay.runs.compare import share_problems

MOST_MODELS = 40  # in one plot
LEAST_POINTS = 2  # of a plot that shows a relation


def board_figures(board: Leaderboard, sources: Sources) -> str:
    """Return forest plots, heat maps, quality against size and speed, and scores over time."""
    parts: list[str] = []
    for block in board.blocks:
        parts += [*_forests(block), *_heat_maps(block), *_trade_offs(block)]
    parts += _histories(sources)
    return f'<div class="panels broad">{"".join(parts)}</div>' if parts else ""


def _results(block: LeaderboardBlock, position: int) -> list[Result]:
    """Return the complete results of a column, the best first."""
    found = []
    for row in block.rows:
        cell = row.cells[position]
        if cell and cell.result and cell.state == "complete":
            found.append(cell.result)
    return sorted(found, key=lambda result: -result.pass_at[1].value)


def _forests(block: LeaderboardBlock) -> Iterator[str]:
    """Yield the differences of all models to the best one, column by column."""
    for position, column in enumerate(block.columns):
        results = _results(block, position)[:MOST_MODELS]
        if len(results) < LEAST_POINTS:
            continue
        best = results[0]
        others = [one for one in results[1:] if share_problems(best, one)]
        if others:
            family = compare_family(best, others)
            drawing = draw_family(family, [best, *others], WHOLE)
            note = (
                f"{column.benchmark}: every model compared with the best one. Intervals cover "
                "together, and p-values are corrected by Holm's method."
            )
            yield figure(drawing, note, "broad")


def _heat_maps(block: LeaderboardBlock) -> Iterator[str]:
    """Yield which model solves which problem, column by column."""
    for position, column in enumerate(block.columns):
        found = [
            (row.model, problem_shares(cell.result))
            for row in block.rows[:MOST_MODELS]
            if (cell := row.cells[position]) and cell.result
        ]
        if len(found) < LEAST_POINTS:
            continue
        problems = tuple(dict.fromkeys(task for _, shares in found for task in shares))
        rows = tuple(
            HeatRow(name, tuple(shares.get(task) for task in problems)) for name, shares in found
        )
        heat = HeatMap(problems, rows, f"Problems by model: {column.benchmark}")
        note = f"{len(problems):,} problems, the easiest at the left."
        yield figure(draw_heat_map(heat, WHOLE), note, "broad")


def _trade_offs(block: LeaderboardBlock) -> Iterator[str]:
    """Yield quality against size and speed, if at least two models have both."""
    for name in ("size", "speed"):
        points = [_point(row, name) for row in block.rows]
        if sum(point is not None for point in points) >= LEAST_POINTS:
            marks = zip(block.rows, mark_pareto(points), strict=True)
            rows = tuple(replace(row, pareto=mark) for row, mark in marks)
            yield figure(draw_trade_off(replace(block, rows=rows), name), kind="broad")


def _point(row: Row, name: str) -> tuple[float, float] | None:
    """Return quality and a measure, larger is better, or None if one is not known."""
    value = row.measures.get(name)
    if row.quality is None or not value:
        return None
    return row.quality, value if MEASURES[name].larger_is_better else -value


def _histories(sources: Sources) -> list[str]:
    """Return scores over time, for benchmarks on which a model has several runs."""
    runs: dict[str, list[RunEntry]] = {}
    for run in sources.runs:
        if run.entry.result and 1 in run.entry.result.pass_at:
            name = f"{run.entry.benchmark}{run.entry.selection}"
            runs.setdefault(name, []).append(run.entry)
    return [
        figure(draw_runs(entries), kind="broad")
        for _, entries in sorted(runs.items())
        if len({entry.model for entry in entries}) < len(entries)
    ]
