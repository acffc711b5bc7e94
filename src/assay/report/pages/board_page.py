"""Render the leaderboard: models by benchmarks with intervals and groups, and plots of them."""

from __future__ import annotations

from assay.report.leaderboard import Block, Cell, Leaderboard, Row, leaderboard
from assay.report.leaderboard.grid import list_block_notes, list_notes
from assay.report.pages.figures import board_figures, score_bar
from assay.report.pages.markup import link, table, text
from assay.report.pages.section import Section, join_key
from assay.report.pages.sources import Sources
from assay.report.pages.words import ends, percent

BOARD = "board"


def build_board(sources: Sources) -> Leaderboard:
    """Return the leaderboard of all runs, with groups of models that cannot be distinguished."""
    results = [run.entry.result for run in sources.runs if run.entry.result]
    unfinished = [run.entry for run in sources.runs if not run.entry.result]
    return leaderboard(results, unfinished=unfinished, columns=("group",))


def render_board(sources: Sources) -> Section:
    """Return the page of the leaderboard."""
    board = build_board(sources)
    known = {(run.entry.run, run.entry.timestamp): run.key for run in sources.runs}
    blocks = "".join(
        _block(block, number, len(board.blocks), known) for number, block in enumerate(board.blocks)
    )
    notes = "".join(f"<li>{text(note)}</li>" for note in list_notes(board))
    html = (
        '<header class="title"><p class="eyebrow">models by benchmarks</p><h1>Leaderboard</h1>'
        f'</header>{blocks}{board_figures(board, sources)}<ul class="notes">{notes}</ul>'
    )
    return Section(BOARD, "Leaderboard", html)


def _block(block: Block, number: int, blocks: int, known: dict[tuple[str, str], str]) -> str:
    headings = ["#", "Model"]
    for column in block.columns:
        headings += [column.benchmark, "95 % interval", "", "group"]
    rows = [_row(row, known) for row in block.rows]
    title = f"Block {number + 1}" if blocks > 1 else "Scores"
    notes = "".join(f"<li>{text(note)}</li>" for note in list_block_notes(block))
    return (
        f'<section class="panel"><h2>{title} <small>{text(block.settings)}</small></h2>'
        f"{table(headings, rows, left=2, kind='board')}"
        f'<ul class="notes">{notes}</ul></section>'
    )


def _row(row: Row, known: dict[tuple[str, str], str]) -> list[str]:
    rank = "" if row.mean_rank is None else f"{row.mean_rank:g}"
    cells = [rank, f"<strong>{text(row.model)}</strong>"]
    for cell in row.cells:
        cells += _cell(cell, known)
    return cells


def _cell(cell: Cell | None, known: dict[tuple[str, str], str]) -> list[str]:
    if cell is None:
        return ["", "", "", ""]
    one = cell.estimate
    key = known.get((cell.run, cell.timestamp))
    if one is None:
        return [text(cell.state), "", "", ""]
    mark = "‡" if cell.state == "incomplete" else ""
    shown = f"{percent(one.value)}{mark}"
    value = link(join_key("run", key), shown) if key else text(shown)
    bold = f"<strong>{value}</strong>" if cell.best else value
    return [bold, ends(one), score_bar(one.value, one.low, one.high), text(cell.group)]
