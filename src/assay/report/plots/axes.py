"""Draw what plots share: scales and their ticks, axes with grid lines, markers, legends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from assay.report.plots.svg import SIZE, SMALL, colour, element, measure, number, text, tooltip

WIDTH = 720.0
AXIS_HEIGHT = 46.0  # tick labels and the name of a horizontal axis
MINUS = "\N{MINUS SIGN}"
NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
DAY = 86_400.0
HOUR = 3_600.0
STEPS_OF_TIME = (
    10.0, 30.0, 60.0, 300.0, 900.0, 1_800.0, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY,
    7 * DAY, 14 * DAY,
)  # fmt: skip

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, slots=True)
class Tick:
    """A value of an axis and its label."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Scale:
    """Map values between ``low`` and ``high`` to coordinates between ``start`` and ``end``."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def place(self, value: float) -> float:
        """Return the coordinate. Values outside the scale are put at its nearer end."""
        value = min(max(value, self.low), self.high)
        if self.is_log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def nice_step(span: float, count: int) -> float:
    """Return a round step that divides a span into at most ``count`` parts."""
    rough = span / max(1, count)
    power: float = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in NICE if step * power >= rough * (1 - 1e-9))


def linear_ticks(low: float, high: float, count: int = 5, percent: bool = False) -> list[Tick]:
    """Return ticks at round values, the first at or below ``low``, the last at or above ``high``.

    With ``percent`` the values are shares, and the labels are percentages.
    """
    if high <= low:
        low, high = low - 0.5, high + 0.5
    factor = 100 if percent else 1
    step = nice_step((high - low) * factor, count)
    first = math.floor(low * factor / step + 1e-9)
    last = math.ceil(high * factor / step - 1e-9)
    exact = next((d for d in range(6) if abs(step - round(step, d)) < 1e-9 * step), 6)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9), exact)
    labels = [f"{n * step + 0.0:,.{decimals}f}" for n in range(first, last + 1)]
    return [
        Tick(n * step / factor, label.replace("-", MINUS) + (" %" if percent else ""))
        for n, label in enumerate(labels, first)
    ]


def signed(value: float) -> str:
    """Return a number with its sign, a real minus, and no sign for zero."""
    shown = f"{value:+.1f}"
    return shown[1:] if float(shown) == 0 else shown.replace("-", MINUS)


def show_share(value: float, low: float | None, high: float | None) -> str:
    """Return a share as ``75.6 % [68.5, 81.5]``, without brackets if it has no interval."""
    ends = "" if low is None or high is None else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return f"{100 * value:.1f} %{ends}"


def log_ticks(low: float, high: float, most: int = 8) -> list[Tick]:
    """Return ticks at 1, 2, 5, 10 …, or at powers of ten only if these are too many.

    A range that contains fewer than two of them has ticks at round values.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for digits in ((1, 2, 5), (1,)):
        values = [d * 10.0**p for p in range(first, last + 1) for d in digits]
        inside = [v for v in values if low * (1 - 1e-9) <= v <= high * (1 + 1e-9)]
        if 2 <= len(inside) <= most:
            return _label(inside)
    if high < 10 * low:
        ticks = [tick for tick in linear_ticks(low, high) if low <= tick.value <= high]
        return ticks if low >= 1e-4 else [Tick(t.value, _power(t.value)) for t in ticks]
    powers = range(first, last + 1, max(1, math.ceil((last - first) / most)))
    return _label([10.0**p for p in powers if low <= 10.0**p <= high])


def _label(values: Sequence[float]) -> list[Tick]:
    """Return ticks with labels of the same style: powers of ten if the first is tiny."""
    show = short if values[0] >= 1e-3 else _power
    return [Tick(value, show(value)) for value in values]


def short(value: float) -> str:
    """Return a positive number in few characters: 0.05, 2.5k, 10⁻⁶."""
    if value < 1e-3 or value >= 1e12:
        return _power(value)
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size * 10 or value == size:
            return f"{value / size:.3g}{unit}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _power(value: float) -> str:
    power = math.floor(math.log10(value) + 1e-9)
    digit = value / 10.0**power
    head = "" if round(digit, 6) == 1 else f"{digit:.3g}·"
    return f"{head}10{str(power).translate(SUPERSCRIPTS)}"


def time_ticks(low: float, high: float, most: int = 6) -> list[Tick]:
    """Return ticks at round times (UTC) between two points in time, given in seconds."""
    span = max(high - low, 1.0)
    step = next((s for s in STEPS_OF_TIME if span / s <= most), None)
    if step is None:
        return _months(low, high, most)
    first = math.ceil(low / step)
    stamps = [n * step for n in range(first, math.floor(high / step) + 1)]
    return [Tick(stamp, _moment(stamp, step)) for stamp in stamps]


def _moment(stamp: float, step: float) -> str:
    moment = datetime.fromtimestamp(stamp, UTC)
    if step < DAY and (moment.hour or moment.minute or moment.second):
        return f"{moment:%H:%M}" if step >= 60 else f"{moment:%H:%M:%S}"
    return f"{moment.day} {moment:%b}"


def describe_period(low: float, high: float) -> str:
    """Return what the labels of ``time_ticks`` leave out: the day or the year, if there is one."""
    first, last = (datetime.fromtimestamp(stamp, UTC) for stamp in (low, high))
    if first.date() == last.date():
        return f"{first.day} {first:%b} {first.year}"
    return str(first.year) if first.year == last.year else f"{first.year} to {last.year}"


def _months(low: float, high: float, most: int) -> list[Tick]:
    first, last = (datetime.fromtimestamp(stamp, UTC) for stamp in (low, high))
    months = (last.year - first.year) * 12 + last.month - first.month
    step = next((s for s in (1, 2, 3, 6, 12) if months / s <= most), 12 * math.ceil(months / 96))
    ticks = []
    for n in range(-(-(first.year * 12 + first.month) // step) * step, 10**6, step):
        moment = datetime(n // 12, n % 12 + 1, 1, tzinfo=UTC)
        if moment > last:
            break
        if moment + timedelta(days=1) > first:
            label = f"{moment:%b} {moment.year}" if step < 12 else str(moment.year)
            ticks.append(Tick(moment.timestamp(), label))
    return ticks


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return coordinates near ``places`` that are ``gap`` apart, if they all fit into the range.

    If they do not fit, they are evenly distributed.
    """
    count = len(places)
    if count > 1 and (count - 1) * gap > high - low:
        gap = (high - low) / (count - 1)
    order = sorted(range(count), key=lambda i: places[i])
    heights: list[float] = []
    for i in order:
        heights.append(max(places[i], low, heights[-1] + gap if heights else low))
    limit = high
    for position in reversed(range(count)):
        heights[position] = min(heights[position], limit)
        limit = heights[position] - gap
    result = [0.0] * count
    for position, i in enumerate(order):
        result[i] = heights[position]
    return result


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


# Series are told apart by shape as well as by colour. Besides the circle, a shape is its size, its
# start and the steps of its outline, in multiples of the radius.
SHAPES: tuple[tuple[float, tuple[int, int], tuple[tuple[str, tuple[float, ...]], ...]], ...] = (
    (0.9, (-1, -1), (("h", (2,)), ("v", (2,)), ("h", (-2,)))),  # square
    (1.25, (0, -1), (("l", (1, 1)), ("l", (-1, 1)), ("l", (-1, -1)))),  # diamond
    (1.2, (0, -1), (("l", (1, 1.8)), ("h", (-2,)))),  # triangle
    (1.2, (0, 1), (("l", (1, -1.8)), ("h", (-2,)))),  # triangle that points down
)


def _outline(x: float, y: float, r: float, shape: int) -> str:
    if not (at := shape % (len(SHAPES) + 1)):
        arc = f"a{number(r)} {number(r)} 0 1 0"
        return f"M{number(x - r)} {number(y)}{arc} {number(2 * r)} 0{arc} {number(-2 * r)} 0z"
    size, (right, down), steps = SHAPES[at - 1]
    r *= size
    moves = (command + " ".join(number(by * r) for by in numbers) for command, numbers in steps)
    return f"M{number(x + right * r)} {number(y + down * r)}{''.join(moves)}z"


def draw_marker(x: float, y: float, fill: str, hint: str = "", shape: int = 0, r: float = 4) -> str:
    """Return a marker with an edge in the colour of the page, so that neighbours stay apart."""
    return element(
        "path", tooltip(hint) if hint else "", d=_outline(x, y, r, shape), fill=fill,
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


def draw_legend(left: float, top: float, keys: Sequence[tuple[str, str]]) -> str:
    """Return entries, each a label and a colour, side by side as far as they fit."""
    parts, x = [], left
    for label, fill in keys:
        wide = min(measure(label, SIZE), 200)
        if x + wide + 16 > WIDTH:
            break
        parts.append(element("rect", x=x, y=top, width=10, height=10, rx=2, fill=fill))
        parts.append(text(x + 15, top + 9.5, label, fill=colour("muted"), width=wide))
        x += wide + 34
    return "".join(parts)
