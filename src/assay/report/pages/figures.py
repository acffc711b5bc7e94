"""Draw the plots of pages from results, samples and measurements."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from assay.report import plots
from assay.report.pages.markup import ends, panel
from assay.report.pages.run.data import RunData, RunSample
from assay.report.pages.sources import ParityDocument
from assay.runs import Result
from assay.runs.compare import tally_problems
from assay.runs.stores.bench_files import BenchFile
from assay.scoring import estimates
from assay.types import Estimate

Kind = Literal["good", "bad", "invalid", "other"]
KINDS: dict[str, Kind] = {"pass": "good", "fail": "bad", "invalid": "invalid"}
MOST_RULES = 6
MOST_PLOTTED = 1e12
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


def interval_cell(one: Estimate) -> str:
    """Return an interval as text with its bar, for a cell of a table."""
    bar = score_bar(one.value, one.low, one.high)
    return f'<span class="interval-cell">{ends(one)}{bar}</span>'


def figure(drawing: plots.Drawing, note: str = "", kind: str = "") -> str:
    """Return a plot as a titled part of a page."""
    return panel(drawing.title, f'<div class="plot">{drawing.embed()}</div>', note, kind)


def run_figures(data: RunData) -> str:
    """Return the plots of a run: reasons, pass@k, length of answers, time of programs."""
    samples = list(data.samples())
    if not samples:
        return ""
    reasons = plots.draw_bars("Verdicts by reason", _reasons(samples), HALF)
    rules = plots.draw_bars("Extraction rules", _rules(samples), HALF)
    curve = _pass_curve(data.source.entry.result)
    if curve:  # both in one panel, beside the curve
        content = (
            f'<div class="plot">{reasons.embed()}</div><h2>{rules.title}</h2>'
            f'<div class="plot">{rules.embed()}</div>'
        )
        counts = panel(reasons.title, content)
    else:
        counts = figure(reasons) + figure(rules)
    return "".join((counts, curve, _lengths(data, samples), _times(samples)))


def _rules(samples: Sequence[RunSample]) -> tuple[plots.Bar, ...]:
    """Return the most frequent rules, and the others together."""
    rules = (sample.found.verdict.rule if sample.found.verdict else "" for sample in samples)
    counts = Counter(rule or "none" for rule in rules)
    bars = [plots.Bar(rule, count) for rule, count in counts.most_common(MOST_RULES)]
    rest = counts.total() - sum(bar.count for bar in bars)
    return tuple([*bars, plots.Bar("others", rest)] if rest else bars)


def _reasons(samples: Sequence[RunSample]) -> tuple[plots.Bar, ...]:
    counts = Counter((sample.reason, sample.status) for sample in samples)
    return tuple(
        plots.Bar(reason, count, KINDS.get(status, "other"))
        for (reason, status), count in counts.most_common()
    )


def _pass_curve(result: Result | None) -> str:
    """Return pass@k for every k, if there are several samples per problem."""
    tallies = list(tally_problems(result).values()) if result else []
    fewest = min((tally.n for tally in tallies), default=0)
    if result is None or fewest < 2:
        return ""
    curve = estimates(tallies, ks=_some_ks(fewest))
    points = tuple(plots.Point(one.k, one.value, one.low, one.high) for one in curve)
    level = result.pass_at[1].level if 1 in result.pass_at else 0.95
    return figure(plots.draw_pass_curves((plots.Line(result.model, points),), level, HALF))


def _some_ks(most: int) -> tuple[int, ...]:
    """Return at most about 20 numbers from 1 to ``most``."""
    if most <= 20:
        return tuple(range(1, most + 1))
    steps = (round(most ** (step / 19)) for step in range(20))
    return tuple(sorted(set(steps)))


def _lengths(data: RunData, samples: Sequence[RunSample]) -> str:
    decoding, limit = data.protocol.decoding, None
    if any(sample.found.completion.tokens_generated for sample in samples):
        if decoding and not data.protocol.origin:
            limit = float(decoding.max_tokens)
        values = ((one.status, one.found.completion.tokens_generated) for one in samples)
        return _histogram("Length of answers", "tokens", values, limit)
    texts = ((one.status, len(one.found.completion.text)) for one in samples)
    return _histogram("Length of answers", "characters", (one for one in texts if one[1]))


def _times(samples: Sequence[RunSample]) -> str:
    verdicts = ((one.status, one.found.verdict) for one in samples)
    values = (
        (status, max(LEAST_CPU, verdict.cpu_s))
        for status, verdict in verdicts
        if verdict and verdict.integrity != "not-run"
    )
    return _histogram("CPU time of programs", "seconds", values)


def _histogram(
    title: str, axis: str, values: Iterable[tuple[str, float]], limit: float | None = None
) -> str:
    """Return values by status, the passes first. All but tokens are on a logarithmic axis."""
    by_status: dict[str, list[float]] = {}
    for status, value in values:
        if math.isfinite(value):
            by_status.setdefault(status, []).append(float(value))
    order = sorted(by_status, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    groups = tuple(
        plots.HistogramGroup(name, tuple(by_status[name]), KINDS.get(name, "other"))
        for name in order
    )
    is_log = axis != "tokens"
    plot = plots.Histogram(title, axis, groups, is_log=is_log, limit=limit, limit_label="most")
    return figure(plots.draw_histogram(plot, HALF)) if groups else ""


def bench_figure(bench: BenchFile) -> str:
    """Return tokens per second by number of sequences, if a plot can show them.

    Files can hold any numbers.
    """
    points = tuple(
        plots.Point(batch.sequences, one.median, one.min, one.max)
        for batch in bench.figures.batches
        if (one := batch.tokens_per_second) and 0 < batch.sequences < MOST_PLOTTED
        if 0 <= one.min <= one.median <= one.max < MOST_PLOTTED
    )
    return figure(plots.draw_speed_curves((plots.Line(bench.model, points),))) if points else ""


def parity_figure(parity: ParityDocument) -> str:
    """Return the KL divergence by position."""
    values = parity.kl_by_position
    return figure(plots.draw_divergence(parity.model.name, values)) if values else ""
