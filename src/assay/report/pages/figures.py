"""Draw the plots of pages from results, samples and measurements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal

from assay.report.leaderboard import Block, Leaderboard, Row
from assay.report.leaderboard.measures import MEASURES, mark_pareto
from assay.report.pages.markup import panel
from assay.report.pages.measurements import BenchDocument, ParityDocument
from assay.report.pages.run_data import RunData, RunSample
from assay.report.pages.sources import RunSource, Sources
from assay.report.plots import (
    Bar,
    BarChart,
    Difference,
    DivergenceCurve,
    Dot,
    Drawing,
    Forest,
    Group,
    HeatMap,
    HeatRow,
    Histogram,
    Moment,
    PassAtK,
    PassCurve,
    Scatter,
    Speed,
    SpeedCurve,
    Track,
    draw_bars,
    draw_divergence,
    draw_forest,
    draw_heat_map,
    draw_histogram,
    draw_history,
    draw_pass_curves,
    draw_scatter,
    draw_speed_curves,
)
from assay.runs import Comparison, Result
from assay.runs.compare import tally_problems
from assay.scoring import estimates
from assay.types import Estimate

Kind = Literal["good", "bad", "invalid", "other"]
KINDS: dict[str, Kind] = {"pass": "good", "fail": "bad", "invalid": "invalid"}
MOST_MODELS = 40  # in one heat map
HALF, WHOLE = 540.0, 1160.0  # widths of plots in panels, in pixels
ORDER = ("pass", "fail", "invalid")
LEAST_CPU = 1e-4  # seconds; on a logarithmic axis


def score_bar(value: float, low: float, high: float) -> str:
    """Return a small bar from 0 to 1 with an interval, for tables and headlines."""
    width = 100.0
    left, right, at = (round(width * share, 2) for share in (low, high, value))
    return (
        f'<svg class="score-bar" viewBox="0 0 {width:g} 8" preserveAspectRatio="none" '
        f'aria-hidden="true"><rect class="track" x="0" y="3" width="{width:g}" height="2"/>'
        f'<rect class="band" x="{left:g}" y="2" width="{max(0.5, right - left):g}" height="4"/>'
        f'<rect class="at" x="{max(0.0, at - 0.5):g}" y="0" width="1" height="8"/></svg>'
    )


def figure(drawing: Drawing, note: str = "", kind: str = "") -> str:
    """Return a plot as a titled part of a page."""
    return panel(drawing.title, f'<div class="plot">{drawing.embed()}</div>', note, kind)


def run_figures(data: RunData) -> str:
    """Return the plots of a run: reasons, pass@k, length of answers, time of programs."""
    samples = list(data.samples())
    if not samples:
        return ""
    return "".join(
        (
            _reasons(samples),
            _pass_curve(data.source.entry.result),
            _lengths(data, samples),
            _times(samples),
        )
    )


def _reasons(samples: Sequence[RunSample]) -> str:
    counts: dict[tuple[str, str], int] = {}
    for sample in samples:
        key = (sample.reason, sample.status)
        counts[key] = counts.get(key, 0) + 1
    bars = tuple(
        Bar(reason, count, KINDS.get(status, "other"))
        for (reason, status), count in sorted(counts.items(), key=lambda item: -item[1])
    )
    return figure(draw_bars(BarChart("Verdicts by reason", bars), HALF))


def _pass_curve(result: Result | None) -> str:
    """Return pass@k for every k, if there are several samples per problem."""
    if result is None or max(result.pass_at, default=1) < 2:
        return ""
    found: Iterable[Estimate] = result.pass_at.values()
    tallies = list(tally_problems(result).values())
    fewest = min((tally.n for tally in tallies), default=0)
    if fewest > 1:
        found = estimates(tallies, ks=_some_ks(fewest))
    curve = tuple(PassAtK(one.k, one.value, one.low, one.high) for one in found)
    level = result.pass_at[1].level if 1 in result.pass_at else 0.95
    return figure(draw_pass_curves((PassCurve(result.model, curve),), level, HALF))


def _some_ks(most: int) -> tuple[int, ...]:
    """Return at most about 20 numbers from 1 to ``most``."""
    if most <= 20:
        return tuple(range(1, most + 1))
    steps = (round(most ** (step / 19)) for step in range(20))
    return tuple(sorted(set(steps)))


def _by_status(samples: Iterable[RunSample], value: str) -> tuple[Group, ...]:
    """Return values by status, the passes first."""
    values: dict[str, list[float]] = {}
    for sample in samples:
        found = {
            "tokens": float(sample.found.completion.tokens_generated),
            "chars": float(len(sample.found.completion.text)),
            "cpu": max(LEAST_CPU, sample.found.verdict.cpu_s) if sample.found.verdict else math.nan,
        }[value]
        if math.isfinite(found):
            values.setdefault(sample.status, []).append(found)
    order = sorted(values, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    return tuple(Group(name, tuple(values[name]), KINDS.get(name, "other")) for name in order)


def _lengths(data: RunData, samples: Sequence[RunSample]) -> str:
    decoding = data.protocol.decoding
    if any(sample.found.completion.tokens_generated for sample in samples):
        limit = float(decoding.max_tokens) if decoding and not data.protocol.origin else None
        groups = _by_status(samples, "tokens")
        plot = Histogram("Length of answers", "tokens", groups, limit=limit, limit_label="most")
    else:
        groups = _by_status((one for one in samples if one.found.completion.text), "chars")
        plot = Histogram("Length of answers", "characters", groups, is_log=True)
    return figure(draw_histogram(plot, HALF)) if groups else ""


def _times(samples: Sequence[RunSample]) -> str:
    ran = [
        sample
        for sample in samples
        if sample.found.verdict and sample.found.verdict.integrity != "not-run"
    ]
    groups = _by_status(ran, "cpu")
    plot = Histogram("CPU time of programs", "seconds", groups, is_log=True)
    return figure(draw_histogram(plot, HALF)) if groups else ""


def difference_figure(found: Comparison, name_a: str, name_b: str) -> str:
    """Return the forest plot of one difference."""
    ends = found.interval
    row = Difference(name_b, found.difference, ends.low, ends.high, found.decision)
    forest = Forest(name_a, (row,), margin=found.margin, level=ends.level)
    return figure(draw_forest(forest, WHOLE), kind="broad")


def family_figure(baseline: RunSource, found: Sequence[tuple[RunSource, Comparison]]) -> str:
    """Return the forest plot of several runs against one."""
    rows = tuple(
        Difference(
            run.entry.model, one.difference, one.interval.low, one.interval.high, one.decision
        )
        for run, one in found
    )
    first = found[0][1]
    forest = Forest(baseline.entry.model, rows, margin=first.margin, level=first.interval.level)
    return figure(draw_forest(forest, WHOLE), kind="broad")


def board_figures(board: Leaderboard, sources: Sources) -> str:
    """Return the plots of a leaderboard: heat maps, quality against size and speed, history."""
    parts = [heat for block in board.blocks for heat in _heat_maps(block)]
    parts += [plot for block in board.blocks for plot in _scatters(block)]
    parts += _histories(sources)
    return f'<div class="panels broad">{"".join(parts)}</div>' if parts else ""


def _heat_maps(block: Block) -> Iterable[str]:
    for position, column in enumerate(block.columns):
        rows = []
        for row in block.rows[:MOST_MODELS]:
            cell = row.cells[position]
            if cell and cell.result:
                rows.append((row.model, tally_problems(cell.result)))
        if len(rows) < 2:
            continue
        problems = tuple(dict.fromkeys(task for _, tallies in rows for task in tallies))
        shares = tuple(
            HeatRow(
                name,
                tuple(t[task].passed / t[task].n if task in t else None for task in problems),
            )
            for name, t in rows
        )
        title = f"Problems by model: {column.benchmark}"
        yield figure(draw_heat_map(HeatMap(problems, shares, title), WHOLE), kind="broad")


def _scatters(block: Block) -> Iterable[str]:
    """Yield quality against every measure that at least two models have."""
    for name in ("size", "speed"):
        measure = MEASURES[name]
        points = [(row, measure.find(row, 0.0)) for row in block.rows]
        known = [(row, x) for row, x in points if x and row.quality is not None]
        if len(known) < 2:
            continue
        sign = 1 if measure.larger_is_better else -1
        best = mark_pareto([(row.quality or 0.0, sign * x) for row, x in known])
        dots = tuple(_dot(row, x, is_best) for (row, x), is_best in zip(known, best, strict=True))
        title = f"Quality against {'speed' if name == 'speed' else 'size'}"
        scatter = Scatter(title, measure.heading, "pass@1", dots, measure.larger_is_better)
        yield figure(draw_scatter(scatter), kind="broad")


def _dot(row: Row, x: float, is_best: bool) -> Dot:
    cell = row.cells[0] if len(row.cells) == 1 else None
    one = cell.estimate if cell else None
    low, high = (one.low, one.high) if one else (None, None)
    return Dot(row.model, x, row.quality or 0.0, low, high, is_best)


def _histories(sources: Sources) -> list[str]:
    """Return scores over time, for benchmarks on which a model has several runs."""
    tracks: dict[str, dict[str, list[Moment]]] = {}
    for run in sources.runs:
        result = run.entry.result
        one = result.pass_at.get(1) if result else None
        when = _seconds(run.entry.timestamp)
        if one is None or when is None:
            continue
        label = f"{run.entry.benchmark}{run.entry.selection}"
        moment = Moment(when, one.value, one.low, one.high, run.entry.run)
        tracks.setdefault(label, {}).setdefault(run.entry.model, []).append(moment)
    return [
        figure(draw_history(_tracks(models), name=benchmark), kind="broad")
        for benchmark, models in sorted(tracks.items())
        if any(len(moments) > 1 for moments in models.values())
    ]


def _tracks(models: dict[str, list[Moment]]) -> tuple[Track, ...]:
    return tuple(Track(name, tuple(moments)) for name, moments in sorted(models.items()))


def _seconds(timestamp: str) -> float | None:
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except (ValueError, OverflowError):
        return None


def bench_figure(found: BenchDocument) -> str:
    """Return tokens per second by number of sequences."""
    speeds = tuple(
        Speed(b.sequences, b.tokens_per_second.median, b.tokens_per_second.min,
              b.tokens_per_second.max)
        for b in found.figures.batches
        if b.tokens_per_second
    )  # fmt: skip
    return figure(draw_speed_curves((SpeedCurve(found.name, speeds),))) if speeds else ""


def parity_figure(found: ParityDocument) -> str:
    """Return the KL divergence by position."""
    curve = DivergenceCurve(found.name, found.kl_by_position)
    return figure(draw_divergence((curve,))) if found.kl_by_position else ""
