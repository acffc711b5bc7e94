"""Register ``json``: everything that a leaderboard has."""

from __future__ import annotations

from typing import Any

from assay.data import codec
from assay.report.leaderboard.board import (
    Cell,
    Column,
    Leaderboard,
    LeaderboardBlock,
    Row,
    renderers,
)
from assay.runs.marks import MARKS

SCHEMA = 1


@renderers.register("json")
def render_json(board: Leaderboard) -> str:
    """Return the leaderboard as JSON. Scores are between 0 and 1."""
    content = {
        "schema": SCHEMA,
        "measures": board.measures,
        "pareto": board.pareto or None,
        "marks": _legend(board),
        "blocks": [_block(block) for block in board.blocks],
        "baselines_without_a_column": board.unused,
    }
    return f"{codec.pretty(content).rstrip()}\n"


def _legend(board: Leaderboard) -> Any:
    """Return the kind and the meaning of each mark that occurs."""
    cells = [cell for block in board.blocks for row in block.rows for cell in row.cells if cell]
    names = {name for cell in cells if cell.result for name in cell.result.marks}
    return {
        name: {"kind": mark.kind, "meaning": mark.meaning, "publishable": not mark.blocks}
        for name, mark in MARKS.items()
        if name in names
    }


def _block(block: LeaderboardBlock) -> Any:
    return {
        "settings": block.settings,
        "differences": block.differences,
        "recorded": block.recorded,
        "columns": [{"benchmark": c.benchmark, "protocol": c.protocol} for c in block.columns],
        "rows": [_row(row, block.columns) for row in block.rows],
        "baselines": [
            {
                "model": baseline.model,
                "kind": baseline.kind,
                "sources": baseline.sources,
                "scores": {
                    column.benchmark: score
                    for column, score in zip(block.columns, baseline.scores, strict=True)
                    if score is not None
                },
            }
            for baseline in block.baselines
        ],
    }


def _row(row: Row, columns: tuple[Column, ...]) -> Any:
    return {
        "model": row.model,
        "mean_rank": row.mean_rank,
        "quality": row.quality,
        "mean": codec.to_json(row.pooled),
        "pareto": row.pareto,
        "measures": dict(row.measures),
        "facts": codec.to_json(row.facts),
        "scores": {
            column.benchmark: _cell(cell)
            for column, cell in zip(columns, row.cells, strict=True)
            if cell
        },
    }


def _cell(cell: Cell) -> Any:
    estimate, result = cell.estimate, cell.result
    return {
        "pass_at_1": estimate and estimate.value,
        "low": estimate and estimate.low,
        "high": estimate and estimate.high,
        "level": estimate and estimate.level,
        "method": estimate and estimate.method,
        "problems": estimate and estimate.problems,
        "best": cell.best,
        "rank": cell.rank,
        "group": cell.group or None,
        "state": cell.state,
        "publishable": result.publishable if result else False,
        "not_publishable": result.not_publishable if result else (),
        "marks": result.marks if result else (),
        "run": cell.run,
        "timestamp": cell.timestamp,
        "other_runs": cell.others,
    }
