"""Map values to coordinates, and choose the values at which axes have ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

MINUS = "\N{MINUS SIGN}"
NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
DAY = 86_400.0
HOUR = 3_600.0
STEPS_OF_TIME = (
    10.0, 30.0, 60.0, 300.0, 900.0, 1_800.0, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY,
    7 * DAY, 14 * DAY,
)  # fmt: skip


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
    decimals = max(0, -math.floor(math.log10(step) + 1e-9), _decimals(step))
    return [
        Tick(n * step / factor, _show(n * step, decimals) + (" %" if percent else ""))
        for n in range(first, last + 1)
    ]


def _decimals(step: float) -> int:
    return next((d for d in range(6) if abs(step - round(step, d)) < 1e-9 * step), 6)


def _show(value: float, decimals: int) -> str:
    return f"{value + 0.0:,.{decimals}f}".replace("-", MINUS)


def signed(value: float, decimals: int = 1) -> str:
    """Return a number with its sign, a real minus, and no sign for zero."""
    shown = f"{value:+.{decimals}f}"
    return shown[1:] if float(shown) == 0 else shown.replace("-", MINUS)


def log_ticks(low: float, high: float, most: int = 8) -> list[Tick]:
    """Return ticks at 1, 2, 5, 10 …, or at powers of ten only if these are too many.

    A range that contains fewer than two of them has ticks at round values.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for digits in ((1, 2, 5), (1,)):
        values = [d * 10.0**p for p in range(first, last + 1) for d in digits]
        inside = [v for v in values if low * (1 - 1e-9) <= v <= high * (1 + 1e-9)]
        if 2 <= len(inside) <= most:
            return [Tick(v, _log_label(v, inside[0])) for v in inside]
    if high < 10 * low:
        found = [tick for tick in linear_ticks(low, high) if low <= tick.value <= high]
        return found if low >= 1e-4 else [Tick(t.value, _power(t.value)) for t in found]
    powers = range(first, last + 1, max(1, math.ceil((last - first) / most)))
    values = [10.0**p for p in powers if low <= 10.0**p <= high]
    return [Tick(v, _log_label(v, values[0])) for v in values]


def _log_label(value: float, first: float) -> str:
    """Return a label in the same style for all values: powers of ten if the first is tiny."""
    return short(value) if first >= 1e-3 else _power(value)


SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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
    found = []
    for n in range(-(-(first.year * 12 + first.month) // step) * step, 10**6, step):
        moment = datetime(n // 12, n % 12 + 1, 1, tzinfo=UTC)
        if moment > last:
            break
        if moment + timedelta(days=1) > first:
            label = f"{moment:%b} {moment.year}" if step < 12 else str(moment.year)
            found.append(Tick(moment.timestamp(), label))
    return found


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return coordinates near ``places`` that are ``gap`` apart, if they all fit into the range.

    If they do not fit, they are evenly distributed.
    """
    count = len(places)
    if count > 1 and (count - 1) * gap > high - low:
        gap = (high - low) / (count - 1)
    order = sorted(range(count), key=lambda i: places[i])
    found: list[float] = []
    for i in order:
        found.append(max(places[i], low, found[-1] + gap if found else low))
    limit = high
    for position in reversed(range(count)):
        found[position] = min(found[position], limit)
        limit = found[position] - gap
    result = [0.0] * count
    for position, i in enumerate(order):
        result[i] = found[position]
    return result
