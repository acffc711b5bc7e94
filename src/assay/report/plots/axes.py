"""Draw what most plots share: axes with grid lines, markers, interval bars, legends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assay.report.plots.palette import colour
from assay.report.plots.scales import Scale, Tick
from assay.report.plots.svg import SIZE, SMALL, element, measure, number, text, tooltip

WIDTH = 720.0
AXIS_HEIGHT = 46.0  # tick labels and the name of a horizontal axis


@dataclass(frozen=True, slots=True)
class Frame:
    """The rectangle that data are drawn in."""

    left: float
    top: float
    right: float
    bottom: float


def room_for_labels(ticks: Sequence[Tick]) -> float:
    """Return the left margin that a vertical axis needs for its labels and its name."""
    return max(measure(tick.label, SMALL) for tick in ticks) + 34


def draw_x_axis(frame: Frame, scale: Scale, ticks: Sequence[Tick], name: str) -> str:
    """Return grid lines, tick labels that do not overlap, and the name below."""
    grid, labels, last = [], [], float("-inf")
    for tick in ticks:
        x = scale.place(tick.value)
        half = measure(tick.label, SMALL) / 2
        grid.append(f"M{number(x)} {number(frame.top)}V{number(frame.bottom)}")
        if x - half > last + 6:
            labels.append(text(x, frame.bottom + 17, tick.label, size=SMALL, anchor="middle"))
            last = x + half
    middle = (frame.left + frame.right) / 2
    return "".join(
        (
            element("path", d="".join(grid), stroke=colour("grid"), fill="none"),
            element("g", *labels, fill=colour("muted")),
            text(middle, frame.bottom + 37, name, anchor="middle", fill=colour("muted"),
                 width=frame.right - frame.left + 80),
        )
    )  # fmt: skip


def draw_y_axis(frame: Frame, scale: Scale, ticks: Sequence[Tick], name: str) -> str:
    """Return grid lines, tick labels at the left, and the name along the axis."""
    grid = "".join(
        f"M{number(frame.left)} {number(scale.place(t.value))}H{number(frame.right)}" for t in ticks
    )
    labels = [
        text(frame.left - 8, scale.place(t.value) + 4, t.label, size=SMALL, anchor="end")
        for t in ticks
    ]
    middle = (frame.top + frame.bottom) / 2
    return "".join(
        (
            element("path", d=grid, stroke=colour("grid"), fill="none"),
            element("g", *labels, fill=colour("muted")),
            text(12, middle, name, anchor="middle", fill=colour("muted"), rotate=-90,
                 width=frame.bottom - frame.top + 40),
        )
    )  # fmt: skip


def draw_baseline(frame: Frame) -> str:
    """Return the line at the bottom of a frame."""
    line = f"M{number(frame.left)} {number(frame.bottom)}H{number(frame.right)}"
    return element("path", d=line, stroke=colour("axis"), fill="none")


def _circle(x: float, y: float, r: float) -> str:
    return f"M{number(x - r)} {number(y)}a{number(r)} {number(r)} 0 1 0 {number(2 * r)} 0" + (
        f"a{number(r)} {number(r)} 0 1 0 {number(-2 * r)} 0z"
    )


def _square(x: float, y: float, r: float) -> str:
    r *= 0.9
    return f"M{number(x - r)} {number(y - r)}h{number(2 * r)}v{number(2 * r)}h{number(-2 * r)}z"


def _diamond(x: float, y: float, r: float) -> str:
    r *= 1.25
    return f"M{number(x)} {number(y - r)}l{number(r)} {number(r)}l{number(-r)} {number(r)}" + (
        f"l{number(-r)} {number(-r)}z"
    )


def _triangle(x: float, y: float, r: float) -> str:
    r *= 1.2
    return f"M{number(x)} {number(y - r)}l{number(r)} {number(1.8 * r)}h{number(-2 * r)}z"


def _triangle_down(x: float, y: float, r: float) -> str:
    r *= 1.2
    return f"M{number(x)} {number(y + r)}l{number(r)} {number(-1.8 * r)}h{number(-2 * r)}z"


# Series are told apart by shape as well as by colour.
SHAPES: tuple[Callable[[float, float, float], str], ...] = (
    _circle, _square, _diamond, _triangle, _triangle_down,
)  # fmt: skip


def draw_marker(x: float, y: float, fill: str, hint: str = "", shape: int = 0, r: float = 4) -> str:
    """Return a marker with an edge in the colour of the page, so that neighbours stay apart."""
    return element(
        "path", tooltip(hint) if hint else "", d=SHAPES[shape % len(SHAPES)](x, y, r), fill=fill,
        stroke=colour("paper"), stroke_width=1.2,
    )  # fmt: skip


def draw_vertical_interval(x: float, low: float, high: float, stroke: str) -> str:
    """Return a bar with caps from one vertical coordinate to another."""
    return element(
        "path",
        d=f"M{number(x)} {number(low)}V{number(high)}"
        f"M{number(x - 3.5)} {number(low)}h7M{number(x - 3.5)} {number(high)}h7",
        stroke=stroke, stroke_width=1.4, fill="none",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a legend."""

    label: str
    fill: str


def draw_legend(left: float, top: float, keys: Sequence[Key], right: float = WIDTH) -> str:
    """Return the entries side by side, as far as they fit."""
    parts, x = [], left
    for key in keys:
        wide = min(measure(key.label, SIZE), 200)
        if x + wide + 16 > right:
            break
        parts.append(element("rect", x=x, y=top, width=10, height=10, rx=2, fill=key.fill))
        parts.append(text(x + 15, top + 9.5, key.label, fill=colour("muted"), width=wide))
        x += wide + 34
    return "".join(parts)
