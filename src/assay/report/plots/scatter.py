"""Draw quality against size or speed, with intervals and the models that no other one beats."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assay.report.plots import axes
from assay.report.plots.svg import SMALL, Drawing, colour, element, fit, measure, number, text

HEIGHT, LONGEST = 380.0, 190.0
LINE = 14.0
Place = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True, slots=True)
class Dot:
    """A model: its cost (any number above zero), its quality between 0 and 1, its interval."""

    label: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    best: bool = False  # no other model is better in both


@dataclass(frozen=True, slots=True)
class Scatter:
    """Models by quality and one other number."""

    title: str
    x_name: str
    y_name: str
    dots: tuple[Dot, ...]
    larger_is_better: bool = False  # of x: true of speed, false of size


def draw_scatter(data: Scatter) -> Drawing:
    """Return a marker per model; a line of steps joins the ones that no other one beats."""
    dots = [dot for dot in data.dots if dot.x > 0]
    low, high = min((d.x for d in dots), default=1.0), max((d.x for d in dots), default=10.0)
    is_log = high / low > 8
    ends = [v for d in dots for v in (d.y, d.low, d.high) if v is not None] or [0.0, 1.0]
    y_ticks = axes.linear_ticks(min(ends), min(max(ends), 1.0), percent=True)
    frame = axes.Frame(
        axes.room_for_labels(y_ticks), 10, axes.WIDTH - 14, HEIGHT - axes.AXIS_HEIGHT
    )
    y = axes.Scale(y_ticks[0].value, y_ticks[-1].value, frame.bottom, frame.top)
    if is_log:
        first, last = low / 1.25, high * 1.25
        x_ticks = axes.log_ticks(first, last)
    else:
        x_ticks = axes.linear_ticks(low * 0.9, high * 1.05, 7)
        first, last = x_ticks[0].value, x_ticks[-1].value
    x = axes.Scale(first, last, frame.left + 10, frame.right - 10, is_log)
    direction = "right is better" if data.larger_is_better else "left is better"
    places = [(x.place(d.x), y.place(d.y)) for d in dots]
    corners = _find_corners(data, x, y)
    lines = [
        (min(a[0], b[0]) - 2, min(a[1], b[1]) - 2, max(a[0], b[0]) + 2, max(a[1], b[1]) + 2)
        for a, b in itertools.pairwise(corners)
    ]
    body = (
        axes.draw_x_axis(frame, x, x_ticks, f"{data.x_name} ({direction})"),
        axes.draw_y_axis(frame, y, y_ticks, data.y_name),
        axes.draw_baseline(frame),
        _draw_front(corners),
        *(
            axes.draw_vertical_interval(x.place(d.x), y.place(d.low), y.place(d.high), _fill(d))
            for d in dots
            if d.low is not None and d.high is not None
        ),
        *(
            axes.draw_marker(*place, _fill(d), _hint(d, data), 2 if d.best else 0)
            for d, place in zip(dots, places, strict=True)
        ),
        *_draw_labels(dots, places, frame, _obstacles(dots, places, x, y), lines),
    )
    words = "; ".join(_hint(dot, data) for dot in dots)
    return Drawing(
        axes.WIDTH, HEIGHT, data.title, f"Scatter plot of {data.y_name} by {data.x_name}. {words}.",
        "".join(body), "Diamonds: no other model is better in both; bars are intervals",
    )  # fmt: skip


def _fill(dot: Dot) -> str:
    return colour("good" if dot.best else "other")


def _hint(dot: Dot, data: Scatter) -> str:
    about = f"{dot.label}: {axes.show_share(dot.y, dot.low, dot.high)}"
    return f"{about}, {data.x_name} {axes.short(dot.x)}{', not beaten' if dot.best else ''}"


def _find_corners(data: Scatter, x: axes.Scale, y: axes.Scale) -> list[Place]:
    """Return the border of what the models reach: the corners of steps through the best ones."""
    front = sorted((d for d in data.dots if d.best and d.x > 0), key=lambda d: (d.x, d.y))
    places = [(x.place(dot.x), y.place(dot.y)) for dot in front]
    corners = places[:1]
    for before, place in itertools.pairwise(places):
        corner = (before[0], place[1]) if data.larger_is_better else (place[0], before[1])
        corners += [corner, place]
    return corners


def _draw_front(corners: Sequence[Place]) -> str:
    if len(corners) < 2:
        return ""
    path = "L".join(f"{number(a)} {number(b)}" for a, b in corners)
    return element(
        "path", d=f"M{path}", fill="none", stroke=colour("good"), stroke_width=1.4,
        stroke_dasharray="5 4", stroke_opacity=0.7,
    )  # fmt: skip


def _draw_labels(
    dots: Sequence[Dot],
    places: Sequence[Place],
    frame: axes.Frame,
    obstacles: Sequence[Box],
    lines: Sequence[Box],
) -> Iterator[str]:
    """Yield a label per dot at the first place that is free, joined to its dot if it is far.

    A place on one of the lines is taken only if there is no other.
    """
    taken = list(obstacles)
    order = sorted(range(len(dots)), key=lambda i: (not dots[i].best, -dots[i].y))
    for i in order:
        x, y = places[i]
        label = fit(dots[i].label, LONGEST, SMALL)
        wide = measure(label, SMALL)
        free = [
            box
            for box in _candidates(x, y, wide)
            if box[0] >= frame.left and box[2] <= frame.right + 12
            if box[1] >= frame.top - 8 and box[3] <= frame.bottom
            if not any(_overlap(box, other) for other in taken)
        ]
        if not free:
            continue  # pointing at the marker still shows the name
        clear = (box for box in free if not any(_overlap(box, line) for line in lines))
        box = next(clear, free[0])
        taken.append(box)
        middle = (box[1] + box[3]) / 2
        if abs(middle - y) > LINE + 4:
            edge = box[0] - 2 if box[0] > x else box[2] + 2
            yield element(
                "path", d=f"M{number(x)} {number(y)}L{number(edge)} {number(middle)}",
                stroke=colour("axis"), stroke_width=0.8, fill="none",
            )  # fmt: skip
        before = box[2] <= x
        yield text(
            box[2] if before else box[0], box[3] - 3, dots[i].label, size=SMALL, width=LONGEST,
            anchor="end" if before else "start",
            fill=colour("ink" if dots[i].best else "muted"), halo=True,
        )  # fmt: skip


def _obstacles(
    dots: Sequence[Dot], places: Sequence[Place], x: axes.Scale, y: axes.Scale
) -> list[Box]:
    """Return what labels keep clear of: markers and interval bars."""
    boxes = [(a - 5, b - 5, a + 5, b + 5) for a, b in places]
    for dot in dots:
        if dot.low is not None and dot.high is not None:
            at = x.place(dot.x)
            boxes.append((at - 4, y.place(dot.high), at + 4, y.place(dot.low)))
    return boxes


def _candidates(x: float, y: float, wide: float) -> Iterator[Box]:
    """Yield places for a label: at the sides, above and below, then farther away."""
    for away in range(7):
        for up in (0,) if not away else (-away, away):
            middle = y + up * LINE
            gap = 9 if away < 2 else 14
            yield (x + gap, middle - LINE / 2, x + gap + wide, middle + LINE / 2)
            yield (x - gap - wide, middle - LINE / 2, x - gap, middle + LINE / 2)


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
