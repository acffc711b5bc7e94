"""Lay a block out as cells of text, which the formats for readers escape and align."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from assay.data.printable import CELL_LIMIT, clean_line, quantity
from assay.report.leaderboard.board import BaselineRow, Cell, Leaderboard, LeaderboardBlock, Row
from assay.report.leaderboard.measures import GROUP, MEAN, MEASURES, MOST_MODELS
from assay.report.text import (
    describe_gap,
    explain_marks,
    interval,
    label_mark,
    label_marks,
    level,
)
from assay.runs import Result
from assay.runs.marks import MARKS, MarkName, list_marks

PARETO = "◆"
MOST_LISTED = 20  # incomplete runs in the notes
MOST_DETAILS = 6  # of a defect, likewise
MOST_DIFFERENCE = 300  # characters
KINDS = {"baseline": "published", "target": "target"}


@dataclass(frozen=True, slots=True)
class GridCell:
    """A cell as text without control characters. ``value`` is what a reader would sort by.

    ``marks`` are not part of the text, so that formats can set them off.
    """

    text: str
    bold: bool = False
    value: float | None = None
    marks: tuple[MarkName, ...] = ()


GridColumn = tuple[str, Callable[[Row], GridCell], Callable[[BaselineRow], GridCell]]


@dataclass(frozen=True, slots=True)
class Grid:
    """A block as text. The second column has the models; ``notes`` are about this block."""

    title: str
    subtitle: str
    shared: str  # the marks of all scores
    headings: tuple[str, ...]
    rows: tuple[tuple[GridCell, ...], ...]
    foreign: tuple[tuple[GridCell, ...], ...]  # baselines and targets
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A leaderboard as text, with notes that explain all of its blocks."""

    grids: tuple[Grid, ...]
    notes: tuple[str, ...]


def lay_out(board: Leaderboard) -> Sheet:
    """Return the leaderboard as text without control characters."""
    grids = tuple(_lay_out_block(board, number) for number in range(len(board.blocks)))
    return Sheet(grids, tuple(map(_clean, list_notes(board))))


def _lay_out_block(board: Leaderboard, number: int) -> Grid:
    block = board.blocks[number]
    columns = _list_columns(board, block)
    prefix = f"Block {number + 1}: " if len(board.blocks) > 1 else ""
    hashes = ", ".join(f"{column.benchmark} {column.protocol[:12]}" for column in block.columns)
    shared = label_marks(find_shared(block))
    return Grid(
        title=_clean(f"{prefix}{block.settings}"),
        subtitle=_clean(f"{'judging protocol' if block.recorded else 'protocol'}: {hashes}"),
        shared=f"all scores: {shared}" if shared else "",
        headings=tuple(_clean(heading) for heading, _, _ in columns),
        rows=tuple(tuple(show(row) for _, show, _ in columns) for row in block.rows),
        foreign=tuple(tuple(show(row) for _, _, show in columns) for row in block.baselines),
        notes=tuple(map(_clean, list_block_notes(block))),
    )


def _list_columns(board: Leaderboard, block: LeaderboardBlock) -> list[GridColumn]:
    """Return every column: its heading, its cell of a model, its cell of a score not ours."""
    columns: list[GridColumn] = [
        ("rank", _show_rank, _dash),
        (
            "model",
            lambda row: GridCell(_clean(row.model)),
            lambda row: GridCell(_clean(f"{row.model} ({KINDS[row.kind]})")),
        ),
    ]
    for at, column in enumerate(block.columns):
        score = partial(_show_score, at, find_shared(block))
        columns.append((column.benchmark, score, partial(_show_published, at)))
        if board.groups:
            columns.append((GROUP, partial(_show_group, at), _nothing))
    if board.means:
        columns.append((MEAN, _show_mean, _dash))
    columns += [
        (MEASURES[name].heading, partial(_show_measure, name), _dash) for name in board.measures
    ]
    if board.pareto:
        columns.append(("Pareto", _show_pareto, _nothing))
    return columns


def _clean(text: str) -> str:
    return clean_line(text, CELL_LIMIT)


def find_shared(block: LeaderboardBlock) -> tuple[MarkName, ...]:
    """Return the properties that all scores of a block have. They are shown once, above it."""
    marks = [set(cell.result.marks) for cell in _cells(block) if cell.result]
    common = set.intersection(*marks) if marks else set()
    return tuple(name for name in MARKS if name in common and MARKS[name].kind == "property")


def own_marks(cell: Cell, shared: tuple[MarkName, ...]) -> tuple[MarkName, ...]:
    """Return the marks of a score that not all scores of its block share."""
    return tuple(name for name in cell.result.marks if name not in shared) if cell.result else ()


def _dash(_: BaselineRow) -> GridCell:
    return GridCell("-")


def _nothing(_: BaselineRow) -> GridCell:
    return GridCell("")


def _show_rank(row: Row) -> GridCell:
    if row.mean_rank is None:
        return GridCell("-")
    shown = f"{row.mean_rank:.2f}" if len(row.cells) > 1 else f"{row.mean_rank:g}"
    return GridCell(shown, value=row.mean_rank)


def _show_score(at: int, shared: tuple[MarkName, ...], row: Row) -> GridCell:
    """Return a score as ``75.6 [68.5, 81.5] (+1)``, with its own marks."""
    if (cell := row.cells[at]) is None:
        return GridCell("-")
    estimate = cell.estimate
    text = f"{100 * estimate.value:.1f} {interval(estimate)}" if estimate else "-"
    if cell.state == "unfinished":
        text = "unfinished"
    shown = f"{text} (+{cell.others})" if cell.others else text
    comparable = estimate.value if estimate and cell.state == "complete" else None
    return GridCell(shown, cell.best, comparable, own_marks(cell, shared))


def _show_published(at: int, row: BaselineRow) -> GridCell:
    score = row.scores[at]
    return GridCell("-" if score is None else f"{100 * score:.1f}", value=score)


def _show_group(at: int, row: Row) -> GridCell:
    cell = row.cells[at]
    return GridCell(_clean(cell.group) if cell else "")


def _show_mean(row: Row) -> GridCell:
    if row.pooled is None:
        return GridCell("-")
    shown = f"{100 * row.pooled.value:.1f} {interval(row.pooled)}"
    return GridCell(shown, row.best_pooled, row.pooled.value)


def _show_measure(name: str, row: Row) -> GridCell:
    value = row.measures[name]
    return GridCell("-" if value is None else MEASURES[name].show(value), value=value)


def _show_pareto(row: Row) -> GridCell:
    return GridCell(PARETO if row.pareto else "", value=float(row.pareto))


def list_notes(board: Leaderboard) -> list[str]:
    """Return the sentences that explain the columns and marks of a leaderboard."""
    cells = [cell for block in board.blocks for cell in _cells(block)]
    levels = sorted({level(cell.estimate) for cell in cells if cell.estimate})
    notes = [f"pass@1 in per cent, with its {' or '.join(levels) or '95 %'} interval."]
    if any(len(block.columns) > 1 for block in board.blocks):
        notes.append("rank: mean rank over all columns; a model needs a complete result in each.")
    if board.groups:
        notes.append(
            "group: models of a column that share a letter cannot be distinguished (paired tests "
            "of all pairs, Holm's correction, 5 %). "
            f"More than {MOST_MODELS} models have no letters."
        )
    if board.means:
        notes.append(
            "mean: over all columns, each with the same weight. Its interval takes the benchmarks "
            "as given, and those that share problems as dependent."
        )
    notes += [MEASURES[name].meaning for name in board.measures]
    if board.pareto:
        against = MEASURES[board.pareto].heading
        notes.append(
            f"{PARETO} Pareto: no other model of the block is at least as good in both pass@1 and "
            f"{against}, and better in one."
        )
    if any(cell.others for cell in cells):
        notes.append(
            "(+N) N more runs of this model, benchmark and protocol. The newest complete one is "
            "shown, whatever its score."
        )
    notes += explain_marks(name for cell in cells if cell.result for name in cell.result.marks)
    if board.unused:
        notes.append(f"Baselines without a column here: {', '.join(board.unused)}.")
    return notes


def list_block_notes(block: LeaderboardBlock) -> list[str]:
    """Return the sentences that explain one block: its protocol, and the marks in it."""
    notes = []
    if block.recorded:
        notes.append(
            "Completions recorded elsewhere: judged by one protocol, but generated in ways that "
            "are not known."
        )
    if block.differences:
        shown = clean_line(block.differences, MOST_DIFFERENCE)
        notes.append(f"Not comparable with block 1: the protocols differ ({shown}).")
    notes += _list_gaps(block)
    notes += _list_defects(_cells(block))
    for baseline in block.baselines:
        source = "; ".join(baseline.sources) or "not given"
        notes.append(
            f"{baseline.model} ({KINDS[baseline.kind]}): not measured by assay. Source: {source}."
        )
    return notes


def _cells(block: LeaderboardBlock) -> list[Cell]:
    return [cell for row in block.rows for cell in row.cells if cell]


def _list_gaps(block: LeaderboardBlock) -> list[str]:
    gaps = [
        f"{row.model} on {column.benchmark}: {_describe_gap(cell.result, cell.unscored)}"
        for row in block.rows
        for column, cell in zip(block.columns, row.cells, strict=True)
        if cell and cell.result and cell.state == "incomplete"
    ]
    listed = f"Incomplete, so neither ranked nor best: {_join(gaps, MOST_LISTED)}."
    return [listed] if gaps else []


def _describe_gap(result: Result, unscored: int) -> str:
    if unscored:
        return f"{quantity(unscored, 'problem')} unscorable there, but not for others"
    return describe_gap(result.coverage) or "nothing was judged"


def _list_defects(cells: list[Cell]) -> list[str]:
    """Return what is known about the defects of a block. ``list_notes`` explains all marks.

    What an incomplete result lacks is listed with it.
    """
    details: dict[MarkName, dict[str, None]] = {}
    for cell in cells:
        for one in list_marks(cell.result) if cell.result else ():
            listed = one.name == "partial" and cell.state == "incomplete"
            if one.mark.kind == "defect" and not listed:
                details.setdefault(one.name, {})[one.detail] = None
    return [
        f"{label_mark(name)} here: {_join(list(details[name]), MOST_DETAILS)}."
        for name in MARKS
        if name in details
    ]


def _join(parts: list[str], most: int) -> str:
    more = f"; and {len(parts) - most} more" if len(parts) > most else ""
    return f"{'; '.join(parts[:most])}{more}"
