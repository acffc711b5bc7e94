"""Register ``csv``: a line per model and block, with numbers between 0 and 1."""

from __future__ import annotations

import csv
import io

from assay.data.printable import clean_line
from assay.report.leaderboard.board import Cell, Leaderboard, LeaderboardBlock, renderers

OF_CELL = (
    "", "_low", "_high", "_state", "_publishable", "_marks", "_others", "_run", "_protocol",
)  # fmt: skip


@renderers.register("csv")
def render_csv(board: Leaderboard) -> str:
    """Return comma-separated values. ``source`` is empty for runs of assay."""
    benchmarks = dict.fromkeys(c.benchmark for block in board.blocks for c in block.columns)
    names = [f"{benchmark}{suffix}" for benchmark in benchmarks for suffix in OF_CELL]
    if board.groups:
        names += [f"{benchmark}_group" for benchmark in benchmarks]
    means = ["mean", "mean_low", "mean_high"] if board.means else []
    pareto = ["pareto"] if board.pareto else []
    headings = [
        "block", "settings", "kind", "model", "mean_rank", *names, *means, *board.measures,
        *pareto, "source",
    ]  # fmt: skip
    file = io.StringIO()
    writer = csv.DictWriter(file, headings, restval="", lineterminator="\n")
    writer.writeheader()
    for number, block in enumerate(board.blocks, 1):
        for line in _lines(board, block):
            values = {"block": number, "settings": block.settings, **line}
            shown = {k: "" if v is None else clean_line(str(v)) for k, v in values.items()}
            writer.writerow(shown)
    return file.getvalue()


def _lines(board: Leaderboard, block: LeaderboardBlock) -> list[dict[str, object]]:
    lines = []
    for row in block.rows:
        line: dict[str, object] = {"kind": "run", "model": row.model, "mean_rank": row.mean_rank}
        for column, cell in zip(block.columns, row.cells, strict=True):
            if cell:
                line |= _cell(column.benchmark, cell, column.protocol, groups=board.groups)
        if board.means and (mean := row.pooled):
            line |= {"mean": mean.value, "mean_low": mean.low, "mean_high": mean.high}
        line |= {name: row.measures[name] for name in board.measures}
        line |= {"pareto": row.pareto} if board.pareto else {}
        lines.append(line)
    for baseline in block.baselines:
        scores = {
            column.benchmark: score
            for column, score in zip(block.columns, baseline.scores, strict=True)
        }
        source = "; ".join(baseline.sources)
        lines.append({"kind": baseline.kind, "model": baseline.model, "source": source, **scores})
    return lines


def _cell(benchmark: str, cell: Cell, protocol: str, *, groups: bool) -> dict[str, object]:
    estimate = cell.estimate
    values = (
        estimate and estimate.value, estimate and estimate.low, estimate and estimate.high,
        cell.state, cell.result and cell.result.publishable,
        cell.result and " ".join(cell.result.marks), cell.others, cell.run, protocol,
    )  # fmt: skip
    line: dict[str, object] = {
        f"{benchmark}{suffix}": value for suffix, value in zip(OF_CELL, values, strict=True)
    }
    return {**line, f"{benchmark}_group": cell.group} if groups else line
