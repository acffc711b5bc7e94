"""Draw counts: bars by name, and histograms stacked by group."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from assay.report.plots import axes
from assay.report.plots.svg import Drawing, colour, element, measure, number, text, tooltip

ROW, BAR = 26.0, 16.0
LABELS = 240.0  # at most
Kind = Literal["good", "bad", "invalid", "other"]
HEIGHT, LEGEND = 250.0, 24.0
BINS = 30


@dataclass(frozen=True, slots=True)
class Bar:
    """A count and its kind, which is its colour."""

    label: str
    count: int
    kind: Kind = "other"


def draw_bars(title: str, bars: Sequence[Bar], width: float = axes.WIDTH) -> Drawing:
    """Return a bar per count of samples, in this order, with the count and its share of all."""
    total = sum(bar.count for bar in bars)
    most = max((bar.count for bar in bars), default=0) or 1
    figures = {bar: f"{bar.count:,}  ({100 * bar.count / (total or 1):.1f} %)" for bar in bars}
    left = min(max((measure(bar.label) for bar in bars), default=0.0), LABELS) + 12
    room = width - left - max(map(measure, figures.values()), default=0.0) - 12
    body = []
    for index, bar in enumerate(bars):
        y = ROW * index + ROW / 2
        wide = max(room * bar.count / most, 1.5 if bar.count else 0)
        body.append(text(left - 12, y + 4, bar.label, anchor="end", width=left - 12))
        if wide:
            body.append(
                element(
                    "rect", tooltip(f"{bar.label}: {figures[bar]} samples"), x=left,
                    y=y - BAR / 2, width=wide, height=BAR, rx=2, fill=colour(bar.kind),
                )
            )  # fmt: skip
        body.append(text(left + wide + 8, y + 4, figures[bar], fill=colour("muted")))
    words = "; ".join(f"{bar.label} {figures[bar]}" for bar in bars)
    return Drawing(
        width, ROW * max(1, len(bars)), title,
        f"Bar chart of {total:,} samples. {words}.", "".join(body),
        f"{total:,} samples",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class HistogramGroup:
    """Values of one kind, which is their colour."""

    label: str
    values: tuple[float, ...]
    kind: Literal["good", "bad", "invalid", "other"] = "other"


@dataclass(frozen=True, slots=True)
class Histogram:
    """Values by group. ``limit`` is drawn as a line, such as the most tokens of a completion."""

    title: str
    axis: str
    groups: tuple[HistogramGroup, ...]
    is_log: bool = False
    limit: float | None = None
    limit_label: str = "limit"


def bin_edges(values: Sequence[float], *, is_log: bool = False, bins: int = BINS) -> list[float]:
    """Return the edges of at most about ``bins`` bins that contain all values."""
    if not values:
        return [0.1, 1.0] if is_log else [0.0, 1.0]
    low, high = min(values), max(values)
    if is_log:
        first, last = math.log10(low), math.log10(high)
        per_decade = max(1, min(10, math.floor(bins / max(last - first, 1e-9))))
        start = math.floor(first * per_decade)
        end = max(start + 1, math.floor(last * per_decade) + 1)
        return [10.0 ** (n / per_decade) for n in range(start, end + 1)]
    step = axes.nice_step(max(high - low, 1e-9), bins) if high > low else max(abs(high), 1.0) / 10
    if all(float(value).is_integer() for value in values):
        step = max(1.0, math.ceil(step))
    start = math.floor(low / step + 1e-9)
    end = max(start + 1, math.floor(high / step + 1e-9) + 1)
    return [n * step for n in range(start, end + 1)]


def count_bins(values: Sequence[float], edges: Sequence[float]) -> list[int]:
    """Return how many values are in every bin; a bin includes its lower edge."""
    counts = [0] * (len(edges) - 1)
    for value in values:
        at = bisect.bisect_right(edges, value * (1 + 1e-12)) - 1
        counts[min(max(at, 0), len(counts) - 1)] += 1
    return counts


def draw_histogram(data: Histogram, width: float = axes.WIDTH) -> Drawing:
    """Return a column per bin. Zero and negative values are left out on a logarithmic axis."""
    groups = [
        (group, [v for v in group.values if math.isfinite(v) and (v > 0 or not data.is_log)])
        for group in data.groups
    ]
    everything = [value for _, values in groups for value in values]
    edges = bin_edges(everything, is_log=data.is_log)
    columns = [(group, count_bins(values, edges)) for group, values in groups]
    totals = [sum(counts[i] for _, counts in columns) for i in range(len(edges) - 1)]
    y_ticks = [
        axes.Tick(t.value, f"{t.value:,.0f}")
        for t in axes.linear_ticks(0, max([*totals, 1]), 4)
        if t.value.is_integer()
    ]
    right = max(edges[-1], data.limit or edges[-1])
    x_ticks = (
        axes.log_ticks(edges[0], right)
        if data.is_log
        else axes.linear_ticks(edges[0], right, int(width / 90))
    )
    legend = LEGEND if len(data.groups) > 1 else 0.0
    frame = axes.Frame(
        axes.room_for_labels(y_ticks), 8 + legend, width - 14, HEIGHT + legend - axes.AXIS_HEIGHT
    )
    low, high = (edges[0], right) if data.is_log else (x_ticks[0].value, x_ticks[-1].value)
    x = axes.Scale(low, high, frame.left, frame.right, data.is_log)
    y = axes.Scale(0, y_ticks[-1].value, frame.bottom, frame.top)
    keys = [(group.label, colour(group.kind)) for group, _ in groups]
    body = (
        axes.draw_legend(frame.left, 0, keys) if legend else "",
        axes.draw_x_axis(frame, x, x_ticks, data.axis),
        axes.draw_y_axis(frame, y, y_ticks, "samples"),
        _draw_columns(columns, edges, x, y),
        axes.draw_baseline(frame),
        _draw_limit(data, frame, x),
    )
    return Drawing(width, HEIGHT + legend, data.title, _describe(data, everything), "".join(body))


def _describe(data: Histogram, values: list[float]) -> str:
    if not values:
        return f"Histogram of {data.axis} without values."
    middle = sorted(values)[len(values) // 2]
    return (
        f"Histogram of {data.axis} of {len(values):,} samples: from {min(values):.4g} to "
        f"{max(values):.4g}, half of them below {middle:.4g}."
    )


def _draw_columns(
    columns: Sequence[tuple[HistogramGroup, list[int]]],
    edges: Sequence[float],
    x: axes.Scale,
    y: axes.Scale,
) -> str:
    base = [0] * (len(edges) - 1)
    parts = []
    for group, counts in columns:
        rects = []
        for i, count in enumerate(counts):
            if count:
                left, right = x.place(edges[i]), x.place(edges[i + 1])
                top, bottom = y.place(base[i] + count), y.place(base[i])
                hint = f"{group.label}: {count:,} from {_edge(edges[i])} to {_edge(edges[i + 1])}"
                rects.append(
                    element(
                        "rect", tooltip(hint), x=left + 0.5, y=top,
                        width=max(right - left - 1, 0.8), height=max(bottom - top, 0.8),
                    )
                )  # fmt: skip
            base[i] += count
        parts.append(element("g", *rects, fill=colour(group.kind)))
    return "".join(parts)


def _edge(value: float) -> str:
    return axes.short(value) if value > 0 else "0"


def _draw_limit(data: Histogram, frame: axes.Frame, x: axes.Scale) -> str:
    if not data.limit:
        return ""
    at = x.place(data.limit)
    path = f"M{number(at)} {number(frame.top - 2)}V{number(frame.bottom)}"
    before = at > (frame.left + frame.right) / 2
    return element(
        "path", d=path, stroke=colour("ink"), stroke_dasharray="4 3", fill="none"
    ) + text(
        at - 6 if before else at + 6, frame.top + 8, data.limit_label,
        anchor="end" if before else "start", fill=colour("muted"),
    )  # fmt: skip
