"""Register ``table``: aligned text for a terminal."""

from __future__ import annotations

from dataclasses import dataclass

from assay.report.leaderboard.board import Leaderboard, renderers
from assay.report.leaderboard.grid import Grid, GridCell, lay_out
from assay.report.text import label_mark
from assay.runs.marks import MARKS

BEST = "*"
COLOURS = {"defect": "red", "property": "bright_black"}
GAP = "  "


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a line, in bold or in a colour if the terminal can show it."""

    text: str
    bold: bool = False
    colour: str | None = None


def table_lines(board: Leaderboard) -> list[tuple[Span, ...]]:
    """Return the lines of all blocks. The best score of a column is bold and has an asterisk."""
    sheet = lay_out(board)
    lines: list[tuple[Span, ...]] = []
    for grid in sheet.grids:
        lines += [*_block_lines(grid), (Span(""),)]
    marked = any(cell.bold for grid in sheet.grids for row in grid.rows for cell in row)
    notes = [*([f"{BEST} best of its column."] if marked else []), *sheet.notes]
    return [*lines, *((Span(note),) for note in notes)]


def _block_lines(grid: Grid) -> list[tuple[Span, ...]]:
    headings = tuple(map(GridCell, grid.headings))
    rows = [headings, *grid.rows, *grid.foreign]
    widths = [max(_width(_spans(cell)) for cell in column) for column in zip(*rows, strict=True)]
    lines: list[tuple[Span, ...]] = [(Span(grid.title, bold=True),), (Span(grid.subtitle),)]
    lines += [(Span(grid.shared, colour=COLOURS["property"]),)] if grid.shared else []
    lines += [(Span(""),)]
    lines += [_line(row, widths) for row in rows]
    return [*lines, *((Span(note),) for note in grid.notes)]


def _spans(cell: GridCell) -> list[Span]:
    """Return the text of a cell and its marks, defects in another colour than properties."""
    spans = [Span(f"{BEST}{cell.text}" if cell.bold else cell.text, cell.bold)]
    for name in cell.marks:
        spans += [Span(" "), Span(label_mark(name), colour=COLOURS[MARKS[name].kind])]
    return spans


def _width(spans: list[Span]) -> int:
    return sum(len(span.text) for span in spans)


def _line(row: tuple[GridCell, ...], widths: list[int]) -> tuple[Span, ...]:
    """Return a row as spans; only the text of a best score is bold, not the space after it."""
    spans: list[Span] = []
    for cell, width in zip(row, widths, strict=True):
        shown = _spans(cell)
        spans += [*shown, Span(" " * (width - _width(shown)) + GAP)]
    while not spans[-1].text.strip():  # the rank is never empty
        spans.pop()
    return tuple(spans)


@renderers.register("table")
def render_table(board: Leaderboard) -> str:
    """Return the lines as plain text."""
    lines = ("".join(span.text for span in line) for line in table_lines(board))
    return "".join(f"{line}\n" for line in lines)
