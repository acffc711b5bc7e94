"""Render the leaderboard: models by benchmarks with intervals and groups, and plots of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assay.report.leaderboard import (
    Baseline,
    Cell,
    Leaderboard,
    LeaderboardBlock,
    ModelFacts,
    Row,
    find_sizes,
    leaderboard,
)
from assay.report.leaderboard.board import BaselineRow
from assay.report.leaderboard.facts import bench_facts
from assay.report.leaderboard.grid import (
    KINDS,
    find_shared,
    list_block_notes,
    list_notes,
    own_marks,
)
from assay.report.leaderboard.measures import MEASURES
from assay.report.pages.board.figures import board_figures
from assay.report.pages.figures import interval_cell
from assay.report.pages.markup import link, table, tag_marks, text
from assay.report.pages.section import PageSection, join_key
from assay.report.pages.sources import Sources
from assay.report.pages.words import ends, percent
from assay.runs.marks import MarkName
from assay.runs.stores.bench_files import BenchFile
from assay.types import Estimate

BOARD = "board"
RECORDED = "replay"  # the engine of completions that were generated elsewhere
MOST_BROAD = 2  # benchmarks with three columns each; more have one
Known = dict[tuple[str, str], str]  # keys of runs, by name and timestamp


def build_board(sources: Sources) -> Leaderboard:
    """Return the leaderboard of all runs, with groups of models that cannot be distinguished."""
    results = [run.entry.result for run in sources.runs if run.entry.result]
    identities = [one.model_identity for one in results if one.model_identity]
    facts = find_sizes(one for one in identities if one.engine != RECORDED)
    for weights, measured in _measured(sources).items():
        facts[weights] = measured.fill(facts.get(weights, ModelFacts()))
    return leaderboard(
        results,
        unfinished=[run.entry for run in sources.runs if not run.entry.result],
        baselines=_baselines(sources),
        facts=facts,
        columns=("group", *(("size", "speed") if facts else ())),
    )


def _measured(sources: Sources) -> dict[str, ModelFacts]:
    """Return the speed and memory that ``assay bench`` measured, by digest of the weights."""
    documents = (one.document for one in sources.measurements)
    return dict(bench_facts(one) for one in documents if isinstance(one, BenchFile))


def _baselines(sources: Sources) -> list[Baseline]:
    """Return what the suites compare with: published scores and targets, of pass@1."""
    found = []
    for suite in sources.suites:
        for one in suite.baselines:
            if one.figure == "pass@1":
                found.append(Baseline(one.benchmark, one.model, one.score, one.source))
        for target in suite.targets:
            if target.figure == "pass@1":
                name = f"target of {suite.suite}"
                found.append(Baseline(target.benchmark, name, target.score, kind="target"))
    return found


def render_board(sources: Sources) -> PageSection:
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
    return PageSection(BOARD, "Leaderboard", html)


def _block(block: LeaderboardBlock, number: int, blocks: int, known: Known) -> str:
    measures = [
        name for name in ("size", "speed") if any(row.measures.get(name) for row in block.rows)
    ]
    compact = len(block.columns) > MOST_BROAD
    headings = ["#", "Model"]
    for column in block.columns:
        headings += [column.benchmark] if compact else [column.benchmark, "95 % interval", "Group"]
    headings += [MEASURES[name].heading for name in measures]
    cells = _Cells(known, find_shared(block))
    show = cells.show_compact if compact else cells.show
    rows = [_row(row, measures, show) for row in block.rows]
    rows += [_foreign(row, len(measures), compact) for row in block.baselines]
    title = f"Block {number + 1}" if blocks > 1 else "Scores"
    kind = "board compact" if compact else "board"
    notes = "".join(f"<li>{text(note)}</li>" for note in list_block_notes(block))
    return (
        f'<section class="panel main"><h2>{title} <small>{text(block.settings)}</small></h2>'
        f"{_shared(find_shared(block))}"
        f"{table(f'{title}, table', headings, rows, left=2, kind=kind)}"
        f'<ul class="notes">{notes}</ul></section>'
    )


def _shared(names: tuple[MarkName, ...]) -> str:
    return f'<p class="note">All scores: {tag_marks(names)}</p>' if names else ""


def _row(row: Row, measures: list[str], show: Callable[[Cell | None], list[str]]) -> list[str]:
    rank = "" if row.mean_rank is None else f"{row.mean_rank:g}"
    cells = [rank, f"<strong>{text(row.model)}</strong>"]
    for cell in row.cells:
        cells += show(cell)
    for name in measures:
        value = row.measures.get(name)
        cells.append("" if value is None else text(MEASURES[name].show(value)))
    return cells


def _foreign(row: BaselineRow, measures: int, compact: bool) -> list[str]:
    cells = ["", f"<em>{text(row.model)} ({KINDS[row.kind]})</em>"]
    for score in row.scores:
        cells += ["" if score is None else f"<em>{percent(score)}</em>"]
        cells += [] if compact else ["", ""]
    return cells + [""] * measures


@dataclass(frozen=True, slots=True)
class _Cells:
    """Render the cells of a block, whose scores all have the ``shared`` marks."""

    known: Known
    shared: tuple[MarkName, ...]

    def show(self, cell: Cell | None) -> list[str]:
        """Return the score, the interval with its bar, and the group, in three columns."""
        if cell is None or cell.estimate is None:
            return [text(cell.state) if cell else "", "", ""]
        return [self._score(cell, cell.estimate), interval_cell(cell.estimate), text(cell.group)]

    def show_compact(self, cell: Cell | None) -> list[str]:
        """Return the score, and below it the interval and the group."""
        if cell is None or cell.estimate is None:
            return [text(cell.state) if cell else ""]
        below = f"{ends(cell.estimate)} {cell.group}".strip()
        return [f"{self._score(cell, cell.estimate)}<small>{text(below)}</small>"]

    def _score(self, cell: Cell, one: Estimate) -> str:
        """Return a score with its marks, as a link to its run. The best one is bold."""
        key = self.known.get((cell.run, cell.timestamp))
        shown = percent(one.value)
        value = link(join_key("run", key), shown) if key else text(shown)
        bold = f"<strong>{value}</strong>" if cell.best else value
        return f"{tag_marks(own_marks(cell, self.shared))} {bold}".lstrip()
