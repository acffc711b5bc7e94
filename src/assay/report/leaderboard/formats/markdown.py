"""Register ``markdown``: one table per block."""

from __future__ import annotations

import re

from assay.report.leaderboard.board import Leaderboard, renderers
from assay.report.leaderboard.grid import Grid, GridCell, lay_out
from assay.report.text import label_mark
from assay.runs.marks import MARKS

# Everything that starts an element of Markdown inside a line, or HTML.
SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$])")
SCORE = re.compile(r"\d+\.\d( \[\d+\.\d, \d+\.\d\])?( \(\+\d+\))?|-")  # needs no escape
NUMBERED = re.compile(r"^(\d+)([.)])|^([-+=])")


def escape(text: str) -> str:
    """Return a text that Markdown shows as it is, also in a table."""
    escaped = SPECIAL.sub(r"\\\1", text)
    return NUMBERED.sub(lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"\\{m[3]}", escaped)


def _cell(cell: GridCell, style: str = "") -> str:
    """Return a cell. Of its marks, defects are in bold, properties are code."""
    mark = "**" if cell.bold else style if cell.text not in ("", "-") else ""
    text = cell.text if SCORE.fullmatch(cell.text) else escape(cell.text)
    parts = [f"{mark}{text}{mark}"]
    for name in cell.marks:
        is_defect = MARKS[name].kind == "defect"
        parts.append(f"**{escape(label_mark(name))}**" if is_defect else f"`{name}`")
    return " ".join(parts)


def _lines(row: tuple[GridCell, ...], style: str = "") -> str:
    return f"| {' | '.join(_cell(cell, style) for cell in row)} |"


def _block(grid: Grid) -> list[str]:
    return [
        f"### {escape(grid.title)}",
        "",
        escape(grid.subtitle),
        "",
        *([escape(grid.shared), ""] if grid.shared else []),
        f"| {' | '.join(map(escape, grid.headings))} |",
        f"|{'|'.join('---' if name == 'model' else '--:' for name in grid.headings)}|",
        *map(_lines, grid.rows),
        *(_lines(row, "_") for row in grid.foreign),
        "",
        *_notes(grid.notes),
    ]


def _notes(notes: tuple[str, ...]) -> list[str]:
    return [*(f"- {escape(note)}" for note in notes), *([""] if notes else [])]


@renderers.register("markdown")
def render_markdown(board: Leaderboard) -> str:
    """Return all blocks. Scores that are not ours are in italics."""
    sheet = lay_out(board)
    lines = [line for grid in sheet.grids for line in _block(grid)]
    return "\n".join([*lines, "---", "", *_notes(sheet.notes)])
