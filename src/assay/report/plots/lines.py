"""Draw lines through points with their intervals; several plots are of this kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assay.report.plots.axes import (
    AXIS_HEIGHT,
    WIDTH,
    Frame,
    draw_baseline,
    draw_marker,
    draw_vertical_interval,
    draw_x_axis,
    draw_y_axis,
    room_for_labels,
)
from assay.report.plots.palette import colour, series_colour
from assay.report.plots.scales import Scale, Tick, spread
from assay.report.plots.svg import Drawing, element, measure, number, text

HEIGHT = 300.0
LABEL_ROOM = 170.0  # at most, for names at the ends of lines
LABEL_GAP = 16.0
DASHES = ("", "7 3", "2 3", "9 3 2 3")


@dataclass(frozen=True, slots=True)
class Point:
    """A value, with its interval if it has one, and what a reader sees when pointing at it."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """Points of one series, from left to right."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class LineChart:
    """Lines in one frame, with the ticks of both axes."""

    title: str
    description: str
    lines: tuple[Line, ...]
    x_name: str
    y_name: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    x_range: tuple[float, float]
    x_is_log: bool = False
    y_is_log: bool = False
    bands: bool = False  # intervals as a band along the line instead of a bar per point
    markers: bool = True
    subtitle: str = ""
    width: float = WIDTH


def value_range(lines: Sequence[Line]) -> tuple[float, float]:
    """Return the lowest and highest value, intervals included."""
    points = [point for line in lines for point in line.points]
    ends = [v for p in points for v in (p.y, p.low, p.high) if v is not None]
    return (min(ends), max(ends)) if ends else (0.0, 1.0)


def draw_lines(chart: LineChart) -> Drawing:
    """Return the plot. Every line has its name at its end if there are several."""
    named = len(chart.lines) > 1
    widest = max((measure(line.label) for line in chart.lines), default=0.0)
    right = chart.width - (min(widest, LABEL_ROOM) + 22 if named else 14)
    frame = Frame(room_for_labels(chart.y_ticks), 10, right, HEIGHT - AXIS_HEIGHT)
    x = Scale(*chart.x_range, frame.left + 12, frame.right - 12, chart.x_is_log)
    low, high = chart.y_ticks[0].value, chart.y_ticks[-1].value
    y = Scale(low, high, frame.bottom, frame.top, chart.y_is_log)
    series = [
        _draw_line(line, number, x, y, bands=chart.bands, markers=chart.markers)
        for number, line in enumerate(chart.lines)
    ]
    body = (
        draw_x_axis(frame, x, chart.x_ticks, chart.x_name),
        draw_y_axis(frame, y, chart.y_ticks, chart.y_name),
        draw_baseline(frame),
        *(back for back, _ in series),
        *(front for _, front in series),
        _draw_names(chart.lines, frame, x.place, y.place) if named else "",
    )
    return Drawing(
        chart.width, HEIGHT, chart.title, chart.description, "".join(body), chart.subtitle
    )  # fmt: skip


def _draw_line(
    line: Line, index: int, x: Scale, y: Scale, *, bands: bool, markers: bool
) -> tuple[str, str]:
    """Return the intervals, and the line with its markers, which lie above all intervals."""
    stroke = series_colour(index)
    points = [(x.place(p.x), y.place(p.y)) for p in line.points]
    path = "M" + "L".join(f"{number(a)} {number(b)}" for a, b in points)
    dash = DASHES[(index // 8) % len(DASHES)] if not markers or index < 8 else DASHES[1]
    attributes = {"stroke_dasharray": dash} if dash else {}
    drawn = element(
        "path", d=path, fill="none", stroke=stroke, stroke_linejoin="round",
        stroke_width=1.8 if markers else 1.1, **attributes,
    )  # fmt: skip
    if markers:
        drawn += "".join(
            draw_marker(a, b, stroke, _hint(line.label, p), index)
            for (a, b), p in zip(points, line.points, strict=True)
        )
    back = _draw_band(line, x, y, stroke) if bands else _draw_bars(line, x, y, stroke)
    return back, drawn


def _hint(label: str, point: Point) -> str:
    return f"{label}: {point.hint}" if label else point.hint


def _draw_band(line: Line, x: Scale, y: Scale, fill: str) -> str:
    known = [(x.place(p.x), p.low, p.high) for p in line.points if p.low is not None]
    upper = [(at, y.place(high)) for at, _, high in known if high is not None]
    lower = [(at, y.place(low)) for at, low, _ in known if low is not None]
    if len(upper) < 2 or len(upper) != len(lower):
        return _draw_bars(line, x, y, fill)
    path = "L".join(f"{number(a)} {number(b)}" for a, b in [*upper, *reversed(lower)])
    return element("path", d=f"M{path}z", fill=fill, fill_opacity=0.16)


def _draw_bars(line: Line, x: Scale, y: Scale, stroke: str) -> str:
    return "".join(
        draw_vertical_interval(x.place(p.x), y.place(p.low), y.place(p.high), stroke)
        for p in line.points
        if p.low is not None and p.high is not None
    )


def _draw_names(
    lines: Sequence[Line],
    frame: Frame,
    place_x: Callable[[float], float],
    place_y: Callable[[float], float],
) -> str:
    """Return the names at the right, moved apart, each joined to the end of its line."""
    shown = [(index, line) for index, line in enumerate(lines) if line.points]
    ends = [(place_x(line.points[-1].x), place_y(line.points[-1].y)) for _, line in shown]
    heights = spread([y for _, y in ends], LABEL_GAP, frame.top + 4, frame.bottom - 2)
    parts = []
    for (index, line), (x, y), height in zip(shown, ends, heights, strict=True):
        start = frame.right + 8
        path = f"M{number(x + 6)} {number(y)}L{number(start - 2)} {number(height)}h8"
        parts.append(
            element(
                "path", d=path, fill="none", stroke=series_colour(index), stroke_dasharray="1 3"
            )
        )  # dots, so that it is not taken for a part of the line
        parts.append(
            text(start + 9, height + 4, line.label, fill=colour("ink"), width=LABEL_ROOM)
        )  # fmt: skip
    return "".join(parts)
