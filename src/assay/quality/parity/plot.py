"""Draw a line as SVG, which needs no library and opens in every browser."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760, 320, 70, 40, 50
FONT = 'font-family="sans-serif" font-size="12"'


def line_plot(values: Sequence[float], title: str, across: str, up: str) -> str:
    """Return a plot of values by index, on a logarithmic axis. Zeros are at the bottom."""
    shown = [value for value in values if value > 0 and math.isfinite(value)]
    low = math.floor(math.log10(min(shown))) if shown else -1
    high = max(low + 1, math.ceil(math.log10(max(shown)))) if shown else 0
    wide, tall = WIDTH - LEFT - 20, HEIGHT - TOP - BOTTOM

    def x(number: float) -> float:
        return LEFT + wide * number / max(1, len(values) - 1)

    def y(value: float) -> float:
        power = math.log10(value) if value > 0 else low
        return TOP + tall * (high - min(max(power, low), high)) / (high - low)

    points = " ".join(
        f"{x(number):.1f},{y(value):.1f}"
        for number, value in enumerate(values)
        if math.isfinite(value)
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" {FONT} font-weight="bold">{escape(title)}</text>',
    ]
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - 20}" stroke="#ddd"/>')
        label = f"{FONT}>1e{power}</text>"
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end" {label}')
    for number in range(0, len(values), max(1, len(values) // 8)):
        parts.append(
            f'<text x="{x(number):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" {FONT}>'
            f"{number}</text>"
        )
    parts += [
        f'<polyline points="{points}" fill="none" stroke="#1f77b4" stroke-width="1.5"/>',
        f'<text x="{LEFT + wide / 2}" y="{HEIGHT - 12}" text-anchor="middle" {FONT}>'
        f"{escape(across)}</text>",
        f'<text transform="translate(16 {TOP + tall / 2}) rotate(-90)" text-anchor="middle" {FONT}>'
        f"{escape(up)}</text>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
