"""Draw the plots of pages from results, samples and measurements."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from assay.report.pages.markup import panel
from assay.report.pages.model.documents import ParityDocument
from assay.report.pages.run.data import RunData, RunSample
from assay.report.pages.words import ends
from assay.report.plots import (
    Bar,
    BarChart,
    DivergenceCurve,
    Drawing,
    Histogram,
    HistogramGroup,
    PassAtK,
    PassCurve,
    Speed,
    SpeedCurve,
    draw_bars,
    draw_divergence,
    draw_histogram,
    draw_pass_curves,
    draw_speed_curves,
)
from assay.runs import Result
from assay.runs.compare import tally_problems
from assay.runs.stores.bench_files import BatchFigures, BenchFile, Spread
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
    return (
        f'<span class="interval-cell">{ends(one)}{score_bar(one.value, one.low, one.high)}</span>'
    )


def figure(drawing: Drawing, note: str = "", kind: str = "") -> str:
    """Return a plot as a titled part of a page."""
    return panel(drawing.title, f'<div class="plot">{drawing.embed()}</div>', note, kind)


def run_figures(data: RunData) -> str:
    """Return the plots of a run: reasons, pass@k, length of answers, time of programs."""
    samples = list(data.samples())
    if not samples:
        return ""
    curve = _pass_curve(data.source.entry.result)
    counts = _counts(samples, bool(curve))
    return "".join((counts, curve, _lengths(data, samples), _times(samples)))


def _counts(samples: Sequence[RunSample], several: bool) -> str:
    """Return verdicts by reason and samples by rule, in one panel or two."""
    reasons = draw_bars(BarChart("Verdicts by reason", _reasons(samples)), HALF)
    rules = draw_bars(BarChart("Extraction rules", _rules(samples)), HALF)
    if not several:
        return figure(reasons) + figure(rules)
    return panel(
        reasons.title,
        f'<div class="plot">{reasons.embed()}</div><h2>{rules.title}</h2>'
        f'<div class="plot">{rules.embed()}</div>',
    )


def _rules(samples: Sequence[RunSample]) -> tuple[Bar, ...]:
    """Return the most frequent rules, and the others together."""
    counts = Counter(
        (sample.found.verdict.rule if sample.found.verdict else "") or "none" for sample in samples
    )
    shown = counts.most_common(MOST_RULES)
    rest = counts.total() - sum(count for _, count in shown)
    bars = [Bar(rule, count) for rule, count in shown]
    return tuple([*bars, Bar("others", rest)] if rest else bars)


def _reasons(samples: Sequence[RunSample]) -> tuple[Bar, ...]:
    counts: dict[tuple[str, str], int] = {}
    for sample in samples:
        key = (sample.reason, sample.status)
        counts[key] = counts.get(key, 0) + 1
    return tuple(
        Bar(reason, count, KINDS.get(status, "other"))
        for (reason, status), count in sorted(counts.items(), key=lambda item: -item[1])
    )


def _pass_curve(result: Result | None) -> str:
    """Return pass@k for every k, if there are several samples per problem."""
    tallies = list(tally_problems(result).values()) if result else []
    fewest = min((tally.n for tally in tallies), default=0)
    if result is None or fewest < 2:
        return ""
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


def _by_status(samples: Iterable[RunSample], value: str) -> tuple[HistogramGroup, ...]:
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
    return tuple(
        HistogramGroup(name, tuple(values[name]), KINDS.get(name, "other")) for name in order
    )


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


def bench_figure(found: BenchFile) -> str:
    """Return tokens per second by number of sequences."""
    speeds = tuple(
        Speed(batch.sequences, one.median, one.min, one.max)
        for batch in found.figures.batches
        if (one := _plottable_rate(batch))
    )
    return figure(draw_speed_curves((SpeedCurve(found.name, speeds),))) if speeds else ""


def _plottable_rate(batch: BatchFigures) -> Spread | None:
    """Return the speeds if a plot can show them: files can hold any numbers."""
    found = batch.tokens_per_second
    if found is None or not 0 < batch.sequences < MOST_PLOTTED:
        return None
    return found if 0 <= found.min <= found.median <= found.max < MOST_PLOTTED else None


def parity_figure(found: ParityDocument) -> str:
    """Return the KL divergence by position."""
    curve = DivergenceCurve(found.name, found.kl_by_position)
    return figure(draw_divergence((curve,))) if found.kl_by_position else ""
