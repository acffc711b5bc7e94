"""Render the first page: all runs, comparisons and measurements."""

from __future__ import annotations

from collections.abc import Sequence

from assay.report.pages.figures import interval_cell
from assay.report.pages.markup import (
    PageSection,
    count,
    day,
    explain_tags,
    join_key,
    link,
    percent,
    table,
    tag_marks,
    text,
)
from assay.report.pages.model_page import summarize_measurement
from assay.report.pages.sources import TITLES, RunSource, Sources

OVERVIEW = "overview"
MOST_LISTED = 60


def render_overview(sources: Sources, pairs: Sequence[tuple[RunSource, RunSource]]) -> PageSection:
    """Return the list of runs with their scores, and links to everything else."""
    parts = [
        '<header class="title"><h1>Results</h1>',
        f'<p class="settings">{_summary(sources)}</p></header>',
        _runs(sources.runs) if sources.runs or not sources.measurements else "",
        _comparisons(pairs),
        _measurements(sources),
        _suites(sources),
    ]
    return PageSection(OVERVIEW, "Results", "".join(parts))


def _summary(sources: Sources) -> str:
    benchmarks = {run.entry.benchmark for run in sources.runs}
    models = {run.model for run in sources.runs}
    if sources.measurements and not sources.runs:
        return text(count(len(sources.measurements), "measurement"))
    parts = [
        count(len(sources.runs), "run"),
        count(len(models), "model"),
        count(len(benchmarks), "benchmark"),
    ]
    board = link("board", "Leaderboard", **{"class": "button"}) if sources.runs else ""
    return f"{text(' · '.join(parts))} {board}"


def _runs(runs: Sequence[RunSource]) -> str:
    if not runs:
        return '<p class="empty">There are no runs. Start one with <code>assay eval</code>.</p>'
    rows = [_run_row(run) for run in runs]
    headings = ("Model", "Benchmark", "Marks", "pass@1", "95 % interval", "Problems", "n", "Date")
    legend = explain_tags(n for run in runs if run.entry.result for n in run.entry.result.marks)
    return (
        '<section class="panel" data-mount="runs"><h2>Runs</h2>'
        f"{table('Table of runs', headings, rows, left=3, kind='runs')}{legend}</section>"
    )


def _run_row(run: RunSource) -> tuple[str, ...]:
    entry, result = run.entry, run.entry.result
    one = result.pass_at.get(1) if result else None
    name = link(join_key("run", run.key), run.model)
    benchmark = text(f"{entry.benchmark}{entry.selection}")
    when = f"<time>{text(day(entry.timestamp))}</time>"
    if result is None:  # the viewer counts its verdicts
        key = text(join_key("run", run.key))
        state = f'<span class="soft" data-progress="{key}">unfinished</span>'
        return name, benchmark, "", state, "", "", "", when
    marks = tag_marks(result.marks)
    if one is None:
        return name, benchmark, marks, '<span class="soft">nothing judged</span>', "", "", "", when
    return (
        name, benchmark, marks, f"<strong>{percent(one.value)}</strong>", interval_cell(one),
        f"{one.problems:,}", f"{result.config.num_samples:,}", when,
    )  # fmt: skip


def _comparisons(pairs: Sequence[tuple[RunSource, RunSource]]) -> str:
    if not pairs:
        return ""
    by_benchmark: dict[str, list[str]] = {}
    for a, b in pairs[:MOST_LISTED]:
        by_benchmark.setdefault(f"{a.entry.benchmark}{a.entry.selection}", []).append(
            f"<li>{link(join_key('compare', a.key, b.key), b.model)} "
            f'<span class="soft">against</span> {text(a.model)}</li>'
        )
    lists = "".join(
        f'<h3>{text(name)}</h3><ul class="columns">{"".join(items)}</ul>'
        for name, items in sorted(by_benchmark.items())
    )
    note = '<p class="note">And more pairs.</p>' if len(pairs) > MOST_LISTED else ""
    content = f"<h2>Comparisons</h2>{lists}{note}"
    return f'<section class="panel main" data-mount="pairs">{content}</section>'


def _measurements(sources: Sources) -> str:
    rows = [
        (
            text(one.name), link(join_key("model", one.key), TITLES[one.kind]),
            summarize_measurement(one),
        )
        for one in sources.measurements
    ]  # fmt: skip
    if not rows:
        return ""
    shown = table("Table of models", ("Model", "Measurement", "Finding"), sorted(rows), left=2)
    return f'<section class="panel main"><h2>Models</h2>{shown}</section>'


def _suites(sources: Sources) -> str:
    """Return every suite with the states of its evaluations."""
    known = {run.entry.run: run.key for run in sources.runs}
    parts = []
    for suite in sources.suites:
        rows = [
            (
                link(join_key("run", known[row.run]), row.model)
                if row.run in known
                else text(row.model),
                text(row.benchmark), text(row.strategy), text(row.decoding), text(row.state),
                text(row.error),
            )
            for row in suite.rows
        ]  # fmt: skip
        headings = ("Model", "Benchmark", "Strategy", "Decoding", "State", "Error")
        parts.append(
            f'<section class="panel main"><h2>Suite {text(suite.suite)}</h2>'
            f"{table(f'Suite {suite.suite}, table', headings, rows, left=6)}</section>"
        )
    return "".join(parts)
