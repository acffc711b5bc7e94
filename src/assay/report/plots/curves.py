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


def draw_pass_curves(
    lines: Sequence[Line], level: float = 0.95, width: float = axes.WIDTH
) -> Drawing:
    """Return pass@k by k with a band for every run. Estimates are between 0 and 1."""
    words = "; ".join(
        f"{line.label}: " + ", ".join(f"pass@{p.x:.0f} {100 * p.y:.1f} %" for p in line.points)
        for line in lines
    )
    return _draw_lines(
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
    return _draw_lines(
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


def draw_speed_curves(lines: Sequence[Line]) -> Drawing:
    """Return tokens per second of all sequences together, by their number.

    A point is the median of the rounds, its interval their minimum and maximum.
    """
    alone = f": {lines[0].label}" if len(lines) == 1 and lines[0].label else ""
    words = "; ".join(
        f"{line.label}: " + ", ".join(f"{p.y:,.1f} with {p.x:.0f}" for p in line.points)
        for line in lines
    )
    return _draw_lines(
        title=f"Throughput by batch size{alone}",
        description=f"Line plot of tokens per second by number of sequences. {words}.",
        lines=lines,
        hint=lambda p: f"{p.x:.0f} sequences: {p.y:,.1f} tokens/s [{p.low:,.1f}, {p.high:,.1f}]",
        x_name="sequences at once",
        y_name="tokens/s",
        y_ticks=axes.linear_ticks(0.0, max(_value_range(lines)[1], 1e-9)),
        subtitle="Median of the rounds; bars are the minimum and maximum",
        **_count_axis(lines),
    )


def draw_divergence(label: str, values: Sequence[float]) -> Drawing:
    """Return the KL divergence in nats per token, one for every position from the first on.

    The axis is logarithmic. Zeros are at the bottom.
    """
    positive = [v for v in values if LEAST <= v <= MOST] or [0.1]
    low = 10.0 ** math.floor(math.log10(min(positive)))
    high = 10.0 ** math.ceil(math.log10(max(positive)))
    x_ticks = axes.linear_ticks(0, max(1, len(values) - 1), 8)
    return _draw_lines(
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


def _draw_lines(
    *, title: str, description: str, lines: Sequence[Line], x_name: str, y_name: str,
    x_ticks: Sequence[axes.Tick], y_ticks: Sequence[axes.Tick], x_range: tuple[float, float],
    x_is_log: bool = False, y_is_log: bool = False, bands: bool = False,
    hint: Callable[[Point], str] | None = None, subtitle: str = "", width: float = axes.WIDTH,
) -> Drawing:  # fmt: skip
    """Return lines in one frame. Every line has its name at its end if there are several.

    Intervals are a bar per point, or with ``bands`` a band along the line. Without ``hint``, which
    says what is shown at a point, points have no markers.
    """
    named = len(lines) > 1
    widest = max((measure(line.label) for line in lines), default=0.0)
    right = width - (min(widest, LABEL_ROOM) + 22 if named else 14)
    frame = axes.Frame(axes.room_for_labels(y_ticks), 10, right, HEIGHT - axes.AXIS_HEIGHT)
    x = axes.Scale(*x_range, frame.left + 12, frame.right - 12, x_is_log)
    y = axes.Scale(y_ticks[0].value, y_ticks[-1].value, frame.bottom, frame.top, y_is_log)
    lines = [_order(line) for line in lines]
    draw_interval = _draw_band if bands else _draw_bars
    body = (
        axes.draw_x_axis(frame, x, x_ticks, x_name),
        axes.draw_y_axis(frame, y, y_ticks, y_name),
        axes.draw_baseline(frame),
        *(draw_interval(line, x, y, series_colour(at)) for at, line in enumerate(lines)),
        *(_draw_line(line, at, x, y, hint) for at, line in enumerate(lines)),
        _draw_names(lines, frame, x, y) if named else "",
    )
    return Drawing(width, HEIGHT, title, description, "".join(body), subtitle)


def _draw_line(
    line: Line, index: int, x: axes.Scale, y: axes.Scale, hint: Callable[[Point], str] | None
) -> str:
    stroke = series_colour(index)
    points = [(x.place(p.x), y.place(p.y)) for p in line.points]
    path = "M" + "L".join(f"{number(a)} {number(b)}" for a, b in points)
    dash = DASHES[(index // 8) % len(DASHES)] if not hint or index < 8 else DASHES[1]
    attributes = {"stroke_dasharray": dash} if dash else {}
    drawn = element(
        "path", d=path, fill="none", stroke=stroke, stroke_linejoin="round",
        stroke_width=1.8 if hint else 1.1, **attributes,
    )  # fmt: skip
    if hint:
        name = f"{line.label}: " if line.label else ""
        drawn += "".join(
            axes.draw_marker(a, b, stroke, f"{name}{hint(p)}", index)
            for (a, b), p in zip(points, line.points, strict=True)
        )
    return drawn


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
