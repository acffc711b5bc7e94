"""Render the leaderboard: models by benchmarks with intervals and groups, and plots of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from assay.report import leaderboard
from assay.report.figures import draw_family, draw_runs, draw_trade_off, map_problems
from assay.report.leaderboard import grid
from assay.report.leaderboard.board import BaselineRow
from assay.report.leaderboard.inputs import bench_facts
from assay.report.leaderboard.measures import MEASURES, mark_pareto, weigh
from assay.report.pages.figures import WHOLE, figure, interval_cell
from assay.report.pages.markup import (
    PageSection,
    ends,
    join_key,
    link,
    percent,
    table,
    tag_marks,
    text,
)
from assay.report.pages.sources import Sources
from assay.report.plots import draw_heat_map
from assay.runs import RunEntry, compare_family
from assay.runs.compare import share_problems
from assay.runs.marks import MarkName
from assay.runs.stores.bench_files import BenchFile

BOARD = "board"
RECORDED = "replay"  # the engine of completions that were generated elsewhere
MOST_MODELS = 40  # in one plot
LEAST_POINTS = 2  # of a plot that shows a relation
MOST_BROAD = 2  # benchmarks with three columns each; more have one
Known = dict[tuple[str, str], str]  # keys of runs, by name and timestamp


def build_board(sources: Sources) -> leaderboard.Leaderboard:
    """Return the leaderboard of all runs, with groups of models that cannot be distinguished."""
    results = [run.entry.result for run in sources.runs if run.entry.result]
    identities = [one.model_identity for one in results if one.model_identity]
    facts = leaderboard.find_sizes(one for one in identities if one.engine != RECORDED)
    benches = (one.document for one in sources.measurements)
    measured = dict(bench_facts(one) for one in benches if isinstance(one, BenchFile))
    for weights, speed in measured.items():
        facts[weights] = speed.fill(facts.get(weights, leaderboard.ModelFacts()))
    return leaderboard.leaderboard(
        results,
        unfinished=[run.entry for run in sources.runs if not run.entry.result],
        baselines=_baselines(sources),
        facts=facts,
        columns=("group", *(("size", "speed") if facts else ())),
    )


def _baselines(sources: Sources) -> list[leaderboard.Baseline]:
    """Return what the suites compare with: published scores and targets, of pass@1."""
    baselines = []
    for suite in sources.suites:
        baselines += [
            leaderboard.Baseline(one.benchmark, one.model, one.score, one.source)
            for one in suite.baselines
            if one.figure == "pass@1"
        ]
        baselines += [
            leaderboard.Baseline(
                one.benchmark, f"target of {suite.suite}", one.score, kind="target"
            )
            for one in suite.targets
            if one.figure == "pass@1"
        ]
    return baselines


def render_board(sources: Sources) -> PageSection:
    """Return the page of the leaderboard."""
    board = build_board(sources)
    known = {(run.entry.run, run.entry.timestamp): run.key for run in sources.runs}
    blocks = "".join(
        _block(block, number, len(board.blocks), known) for number, block in enumerate(board.blocks)
    )
    notes = "".join(f"<li>{text(note)}</li>" for note in grid.list_notes(board))
    html = (
        '<header class="title"><p class="eyebrow">models by benchmarks</p><h1>Leaderboard</h1>'
        f'</header>{blocks}{board_figures(board, sources)}<ul class="notes">{notes}</ul>'
    )
    return PageSection(BOARD, "Leaderboard", html)


def _block(block: leaderboard.LeaderboardBlock, number: int, blocks: int, known: Known) -> str:
    measures = [
        name for name in ("size", "speed") if any(row.measures.get(name) for row in block.rows)
    ]
    compact = len(block.columns) > MOST_BROAD
    headings = ["#", "Model"]
    for column in block.columns:
        headings += [column.benchmark] if compact else [column.benchmark, "95 % interval", "Group"]
    headings += [MEASURES[name].heading for name in measures]
    shared = grid.find_shared(block)
    rows = [
        [
            "" if row.mean_rank is None else f"{row.mean_rank:g}",
            f"<strong>{text(row.model)}</strong>",
            *(part for cell in row.cells for part in _show(cell, known, shared, compact)),
            *(
                "" if value is None else text(MEASURES[name].show(value))
                for name in measures
                for value in [row.measures.get(name)]
            ),
        ]
        for row in block.rows
    ]
    rows += [_foreign(row, len(measures), compact) for row in block.baselines]
    title = f"Block {number + 1}" if blocks > 1 else "Scores"
    kind = "board compact" if compact else "board"
    notes = "".join(f"<li>{text(note)}</li>" for note in grid.list_block_notes(block))
    everywhere = f'<p class="note">All scores: {tag_marks(shared)}</p>' if shared else ""
    return (
        f'<section class="panel main"><h2>{title} <small>{text(block.settings)}</small></h2>'
        f"{everywhere}"
        f"{table(f'{title}, table', headings, rows, left=2, kind=kind)}"
        f'<ul class="notes">{notes}</ul></section>'
    )


def _foreign(row: BaselineRow, measures: int, compact: bool) -> list[str]:
    cells = ["", f"<em>{text(row.model)} ({grid.KINDS[row.kind]})</em>"]
    for score in row.scores:
        cells += ["" if score is None else f"<em>{percent(score)}</em>"]
        cells += [] if compact else ["", ""]
    return cells + [""] * measures


def _show(
    cell: leaderboard.Cell | None, known: Known, shared: tuple[MarkName, ...], compact: bool
) -> list[str]:
    """Return the score, the interval with its bar, and the group, in three columns or in one.

    The score has the marks that not all scores share, and is a link to its run. The best is bold.
    """
    if cell is None or cell.estimate is None:
        return [text(cell.state) if cell else "", *([] if compact else ["", ""])]
    one, key = cell.estimate, known.get((cell.run, cell.timestamp))
    shown = percent(one.value)
    value = link(join_key("run", key), shown) if key else text(shown)
    bold = f"<strong>{value}</strong>" if cell.best else value
    score = f"{tag_marks(grid.own_marks(cell, shared))} {bold}".lstrip()
    if not compact:
        return [score, interval_cell(one), text(cell.group)]
    return [f"{score}<small>{text(f'{ends(one)} {cell.group}'.strip())}</small>"]


def board_figures(board: leaderboard.Leaderboard, sources: Sources) -> str:
    """Return forest plots, heat maps, quality against size and speed, and scores over time."""
    parts: list[str] = []
    for block in board.blocks:
        parts += [*_forests(block), *_heat_maps(block), *_trade_offs(block)]
    parts += _histories(sources)
    return f'<div class="panels broad">{"".join(parts)}</div>' if parts else ""


def _forests(block: leaderboard.LeaderboardBlock) -> Iterator[str]:
    """Yield the differences of all models to the best one, column by column."""
    for position, column in enumerate(block.columns):
        cells = (row.cells[position] for row in block.rows)
        complete = [c.result for c in cells if c and c.result and c.state == "complete"]
        results = sorted(complete, key=lambda result: -result.pass_at[1].value)[:MOST_MODELS]
        others = [one for one in results[1:] if share_problems(results[0], one)]
        if others:
            family = compare_family(results[0], others)
            note = (
                f"{column.benchmark}: every model compared with the best one. Intervals cover "
                "together, and p-values are corrected by Holm's method."
            )
            yield figure(draw_family(family, [results[0], *others], WHOLE), note, "broad")


def _heat_maps(block: leaderboard.LeaderboardBlock) -> Iterator[str]:
    """Yield which model solves which problem, column by column."""
    for position, column in enumerate(block.columns):
        rows = [
            (row.model, [cell])
            for row in block.rows[:MOST_MODELS]
            if (cell := row.cells[position]) and cell.result
        ]
        if len(rows) >= LEAST_POINTS:
            data = map_problems([column.benchmark], rows)
            note = f"{len(data.problems):,} problems, the easiest at the left."
            yield figure(draw_heat_map(data, WHOLE), note, "broad")


def _trade_offs(block: leaderboard.LeaderboardBlock) -> Iterator[str]:
    """Yield quality against size and speed, if at least two models have both."""
    for name in ("size", "speed"):
        points = [weigh(row, name) if row.measures.get(name) else None for row in block.rows]
        if sum(point is not None for point in points) >= LEAST_POINTS:
            marks = zip(block.rows, mark_pareto(points), strict=True)
            rows = tuple(replace(row, pareto=mark) for row, mark in marks)
            yield figure(draw_trade_off(replace(block, rows=rows), name), kind="broad")


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
