"""Plot leaderboards: problems by model, or quality against size or speed."""

from __future__ import annotations

from assay.errors import UsageError
from assay.report.leaderboard import Leaderboard
from assay.report.leaderboard.board import Cell, LeaderboardBlock, Row
from assay.report.leaderboard.measures import MEASURES
from assay.report.plots import (
    Dot,
    Drawing,
    HeatMap,
    HeatRow,
    Scatter,
    draw_heat_map,
    draw_scatter,
)
from assay.runs import Result


def draw_board(board: Leaderboard) -> Drawing:
    """Return a plot of the first block: quality against ``board.pareto``, or problems by model."""
    if not board.blocks:
        raise UsageError("--plot: the leaderboard is empty. Choose other runs.")
    block = board.blocks[0]
    return draw_trade_off(block, board.pareto) if board.pareto else draw_problems(block)


def draw_trade_off(block: LeaderboardBlock, name: str) -> Drawing:
    """Return quality against one of the optional columns, for the models that have both."""
    measure = MEASURES[name]
    dots = [dot for row in block.rows if (dot := _dot(row, name))]
    if not dots:
        raise UsageError(f"--plot: no model has both a score and {name}. Give --facts.")
    benchmarks = ", ".join(column.benchmark for column in block.columns)
    return draw_scatter(
        Scatter(
            f"Quality by {name} on {benchmarks}",
            measure.heading,
            "pass@1" if len(block.columns) == 1 else "mean of pass@1",
            tuple(dots),
            measure.larger_is_better,
        )
    )


def _dot(row: Row, name: str) -> Dot | None:
    """Return a model's place. Only the score of a single benchmark has an interval."""
    value = row.measures.get(name)
    if value is None or value <= 0 or row.quality is None:
        return None
    cell = row.cells[0] if len(row.cells) == 1 else None
    found = cell.estimate if cell else None
    low, high = (found.low, found.high) if found else (None, None)
    return Dot(row.model, value, row.quality, low, high, row.pareto)


def draw_problems(block: LeaderboardBlock) -> Drawing:
    """Return which model solves which problem, for all benchmarks of a block."""
    names: dict[tuple[str, str], None] = {}
    found: list[dict[tuple[str, str], float | None]] = []
    for row in block.rows:
        shares: dict[tuple[str, str], float | None] = {}
        for column, cell in zip(block.columns, row.cells, strict=True):
            shares |= {(column.benchmark, task): share for task, share in _shares(cell).items()}
        names |= dict.fromkeys(shares)
        found.append(shares)
    if not names:
        raise UsageError("--plot: no problem was judged. Choose finished runs.")
    rows = tuple(
        HeatRow(row.model, tuple(shares.get(name) for name in names))
        for row, shares in zip(block.rows, found, strict=True)
    )
    benchmarks = ", ".join(column.benchmark for column in block.columns)
    return draw_heat_map(
        HeatMap(tuple(task for _, task in names), rows, f"Problems by model: {benchmarks}")
    )


def _shares(cell: Cell | None) -> dict[str, float | None]:
    return problem_shares(cell.result) if cell and cell.result else {}


def problem_shares(result: Result) -> dict[str, float | None]:
    """Return the share of passed samples by problem, None for one that was not judged."""
    return {p.task_id: p.passed / p.n if p.n else None for p in result.problems}
