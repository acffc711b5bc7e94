"""Register ``apr-leaderboard``: what leaderboard-summary.sh --json of paiml/apr-leaderboard prints.

It is an array of runs, the best first. Scores are in per cent, and the timestamp is a day.
``marks`` is ours.
"""

from __future__ import annotations

import json
from typing import Any

from assay.data.printable import clean_line
from assay.report.leaderboard.board import Leaderboard, only_block, renderers


@renderers.register("apr-leaderboard")
def render_upstream(board: Leaderboard) -> str:
    """Return one entry for each complete run of the block."""
    entries: list[dict[str, Any]] = [
        {
            "benchmark": f"{result.benchmark}{result.config.problem_selection}",
            "model": clean_line(row.model).split("/")[-1].removesuffix(".apr"),
            "strategy": result.config.prompt_strategy or "standard",
            "pass_at_1": round(100 * cell.estimate.value, 2),
            "passed": result.results.passed,
            "total": result.results.total,
            "errors": result.results.errors,
            "timestamp": result.timestamp.split("T")[0],
            "file": result.path.name,
            "marks": result.marks,
        }
        for row in only_block(board, "apr-leaderboard").rows
        for cell in row.cells
        if cell and (result := cell.result) and cell.estimate and cell.state == "complete"
    ]
    entries.sort(key=lambda entry: -entry["pass_at_1"])
    return json.dumps(entries, indent=2) + "\n"
