"""Draw lines through points with their intervals: pass@k, scores over time, speed, divergence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from assay.data.printable import quantity
from assay.report.plots import axes
from assay.report.plots.svg import Drawing, colour, element, measure, number, series_colour, text

HEIGHT = 300.0
LABEL_ROOM = 170.0  # at most, for names at the ends of lines
LABEL_GAP = 16.0
DASHES = ("", "7 3", "2 3", "9 3 2 3")
MOST_POINTS = 600  # of a divergence: about one per pixel
LEAST, MOST = 1e-12, 1e6  # nats on the axis; what is below is noise


@dataclass(frozen=True, slots=True)
class Point:
    """A value at a place, with its interval if it has one. ``name`` is what it belongs to."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """Points of one series, in any order."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class LineChart:
    """Lines in one frame, with the ticks of both axes. ``hint`` is shown at a point."""

    title: str
    description: str
    lines: Sequence[Line]
    x_name: str
    y_name: str
    x_ticks: Sequence[axes.Tick]
    y_ticks: Sequence[axes.Tick]
    x_range: tuple[float, float]
    hint: Callable[[Point], str] = str
    x_is_log: bool = False
    y_is_log: bool = False
    bands: bool = False  # intervals as a band along the line instead of a bar per point
    markers: bool = True
    subtitle: str = ""
    width: float = axes.WIDTH


def draw_pass_curves(
    lines: Sequence[Line], level: float = 0.95, width: float = axes.WIDTH
) -> Drawing:
    """Return pass@k by k with a band for every run. Estimates are between 0 and 1."""
    words = "; ".join(
        f"{line.label}: " + ", ".join(f"pass@{p.x:.0f} {100 * p.y:.1f} %" for p in line.points)
        for line in lines
    )
    return draw_lines(
        LineChart(
            width=width,
            title="pass@k by number of samples",
            description=f"Line plot with bands. {words}.",
            lines=lines,
            hint=lambda p: f"pass@{p.x:.0f} {axes.show_share(p.y, p.low, p.high)}",
            x_name="k, samples per problem",
            y_name="pass@k",
            y_ticks=_share_ticks(lines),
            bands=True,
            subtitle=f"Bands are {100 * level:g} % intervals",
            **_count_axis(lines),
        )
    )


def draw_history(lines: Sequence[Line], name: str = "") -> Drawing:
    """Return pass@1 of comparable runs over time, in seconds since 1970 (UTC)."""
    lines = [_order(line) for line in lines]
    times = [point.x for line in lines for point in line.points] or [0.0]
    first, last = min(times), max(times)
    if last - first < 60:
        first, last = first - axes.DAY / 2, last + axes.DAY / 2
    words = "; ".join(
        f"{line.label}: {100 * line.points[0].y:.1f} % to {100 * line.points[-1].y:.1f} % "
        f"in {quantity(len(line.points), 'run')}"
        for line in lines
        if line.points
    )
    return draw_lines(
        LineChart(
            title=f"pass@1 over time{f' on {name}' if name else ''}",
            description=f"Line plot with intervals. {words}.",
            lines=lines,
            hint=lambda p: f"{axes.show_share(p.y, p.low, p.high)} {p.name}",
            x_name=f"time of the run (UTC), {axes.describe_period(first, last)}",
            y_name="pass@1",
            x_ticks=axes.time_ticks(first, last),
            y_ticks=_share_ticks(lines),
            x_range=(first, last),
            subtitle="Bars are the runs' intervals",
        )
    )


def draw_speed_curves(lines: Sequence[Line]) -> Drawing:
    """Return tokens per second of all sequences together, by their number.

    A point is the median of the rounds, its interval their minimum and maximum.
    """
    alone = f": {lines[0].label}" if len(lines) == 1 and lines[0].label else ""
    words = "; ".join(
        f"{line.label}: " + ", ".join(f"{p.y:,.1f} with {p.x:.0f}" for p in line.points)
        for line in lines
    )
    return draw_lines(
        LineChart(
            title=f"Throughput by batch size{alone}",
            description=f"Line plot of tokens per second by number of sequences. {words}.",
            lines=lines,
            hint=lambda p: (
                f"{p.x:.0f} sequences: {p.y:,.1f} tokens/s [{p.low:,.1f}, {p.high:,.1f}]"
            ),
            x_name="sequences at once",
            y_name="tokens/s",
            y_ticks=axes.linear_ticks(0.0, max(_value_range(lines)[1], 1e-9)),
            subtitle="Median of the rounds; bars are the minimum and maximum",
            **_count_axis(lines),
        )
    )


def draw_divergence(label: str, values: Sequence[float]) -> Drawing:
    """Return the KL divergence in nats per token, one for every position from the first on.

    The axis is logarithmic. Zeros are at the bottom.
    """
    positive = [v for v in values if LEAST <= v <= MOST] or [0.1]
    low = 10.0 ** math.floor(math.log10(min(positive)))
    high = 10.0 ** math.ceil(math.log10(max(positive)))
    x_ticks = axes.linear_ticks(0, max(1, len(values) - 1), 8)
    return draw_lines(
        LineChart(
            title="KL divergence of the reference from the candidate",
            description=f"Line plot on a logarithmic axis, from {min(positive):.3g} to "
            f"{max(positive):.3g} nats per token over {len(values)} positions.",
            lines=[Line(label, _thin(values, low))] if values else [],
            x_name="position in the prompt (tokens)",
            y_name="KL, nats per token",
            x_ticks=x_ticks,
            y_ticks=axes.log_ticks(low, high if high > low else 10 * low),
            x_range=(0, max(x_ticks[-1].value, 1)),
            y_is_log=True,
            markers=False,
        )
    )


def _thin(values: Sequence[float], low: float) -> tuple[Point, ...]:
    """Return the points; of many, the largest of every few, since peaks are what matters."""
    step = math.ceil(len(values) / MOST_POINTS)
    known = [min(v, MOST) if math.isfinite(v) else 0.0 for v in values]
    parts = (range(at, min(at + step, len(known))) for at in range(0, len(known), step))
    peaks = [max(part, key=known.__getitem__) for part in parts]
    return tuple(Point(at, max(known[at], low)) for at in peaks)


def _order(line: Line) -> Line:
    return Line(line.label, tuple(sorted(line.points, key=lambda point: point.x)))


def _value_range(lines: Sequence[Line]) -> tuple[float, float]:
    """Return the lowest and highest value, intervals included."""
    points = [point for line in lines for point in line.points]
    ends = [v for p in points for v in (p.y, p.low, p.high) if v is not None]
    return (min(ends), max(ends)) if ends else (0.0, 1.0)


def _share_ticks(lines: Sequence[Line]) -> list[axes.Tick]:
    low, high = _value_range(lines)
    return axes.linear_ticks(low, min(high, 1.0), percent=True)


def _count_axis(lines: Sequence[Line]) -> dict[str, Any]:
    """Return a logarithmic axis with a tick at every count that a point has."""
    counts = sorted({int(point.x) for line in lines for point in line.points}) or [1]
    return {
        "x_ticks": [axes.Tick(count, str(count)) for count in counts],
        "x_range": (counts[0], max(counts[-1], counts[0] * 2)),
        "x_is_log": True,
    }


def draw_lines(chart: LineChart) -> Drawing:
    """Return the plot. Every line has its name at its end if there are several."""
    named = len(chart.lines) > 1
    widest = max((measure(line.label) for line in chart.lines), default=0.0)
    right = chart.width - (min(widest, LABEL_ROOM) + 22 if named else 14)
    frame = axes.Frame(axes.room_for_labels(chart.y_ticks), 10, right, HEIGHT - axes.AXIS_HEIGHT)
    x = axes.Scale(*chart.x_range, frame.left + 12, frame.right - 12, chart.x_is_log)
    low, high = chart.y_ticks[0].value, chart.y_ticks[-1].value
    y = axes.Scale(low, high, frame.bottom, frame.top, chart.y_is_log)
    lines = [_order(line) for line in chart.lines]
    series = [_draw_line(chart, line, number, x, y) for number, line in enumerate(lines)]
    body = (
        axes.draw_x_axis(frame, x, chart.x_ticks, chart.x_name),
        axes.draw_y_axis(frame, y, chart.y_ticks, chart.y_name),
        axes.draw_baseline(frame),
        *(back for back, _ in series),
        *(front for _, front in series),
        _draw_names(lines, frame, x, y) if named else "",
    )
    return Drawing(
        chart.width, HEIGHT, chart.title, chart.description, "".join(body), chart.subtitle
    )


def _draw_line(
    chart: LineChart, line: Line, index: int, x: axes.Scale, y: axes.Scale
) -> tuple[str, str]:
    """Return the intervals, and the line with its markers, which lie above all intervals."""
    stroke, markers = series_colour(index), chart.markers
    points = [(x.place(p.x), y.place(p.y)) for p in line.points]
    path = "M" + "L".join(f"{number(a)} {number(b)}" for a, b in points)
    dash = DASHES[(index // 8) % len(DASHES)] if not markers or index < 8 else DASHES[1]
    attributes = {"stroke_dasharray": dash} if dash else {}
    drawn = element(
        "path", d=path, fill="none", stroke=stroke, stroke_linejoin="round",
        stroke_width=1.8 if markers else 1.1, **attributes,
    )  # fmt: skip
    if markers:
        name = f"{line.label}: " if line.label else ""
        drawn += "".join(
            axes.draw_marker(a, b, stroke, f"{name}{chart.hint(p)}", index)
            for (a, b), p in zip(points, line.points, strict=True)
        )
    back = _draw_band(line, x, y, stroke) if chart.bands else _draw_bars(line, x, y, stroke)
    return back, drawn


def _draw_band(line: Line, x: axes.Scale, y: axes.Scale, fill: str) -> str:
    known = [(x.place(p.x), p.low, p.high) for p in line.points if p.low is not None]
    upper = [(at, y.place(high)) for at, _, high in known if high is not None]
    lower = [(at, y.place(low)) for at, low, _ in known if low is not None]
    if len(upper) < 2 or len(upper) != len(lower):
        return _draw_bars(line, x, y, fill)
    path = "L".join(f"{number(a)} {number(b)}" for a, b in [*upper, *reversed(lower)])
    return element("path", d=f"M{path}z", fill=fill, fill_opacity=0.16)


def _draw_bars(line: Line, x: axes.Scale, y: axes.Scale, stroke: str) -> str:
    return "".join(
        axes.draw_vertical_interval(x.place(p.x), y.place(p.low), y.place(p.high), stroke)
        for p in line.points
        if p.low is not None and p.high is not None
    )


def _draw_names(lines: Sequence[Line], frame: axes.Frame, x: axes.Scale, y: axes.Scale) -> str:
    """Return the names at the right, moved apart, each joined to the end of its line."""
    shown = [(index, line) for index, line in enumerate(lines) if line.points]
    ends = [(x.place(line.points[-1].x), y.place(line.points[-1].y)) for _, line in shown]
    heights = axes.spread([down for _, down in ends], LABEL_GAP, frame.top + 4, frame.bottom - 2)
    start, parts = frame.right + 8, []
    for (index, line), (across, down), height in zip(shown, ends, heights, strict=True):
        path = f"M{number(across + 6)} {number(down)}L{number(start - 2)} {number(height)}h8"
        stroke = series_colour(index)
        # Dots, so that it is not taken for a part of the line.
        parts.append(element("path", d=path, fill="none", stroke=stroke, stroke_dasharray="1 3"))
        parts.append(text(start + 9, height + 4, line.label, fill=colour("ink"), width=LABEL_ROOM))
    return "".join(parts)
