"""Draw counts by name as horizontal bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.report.plots.axes import WIDTH
from assay.report.plots.palette import colour
from assay.report.plots.svg import Drawing, element, measure, text, tooltip

ROW, BAR = 26.0, 16.0
LABELS = 240.0  # at most
Kind = Literal["good", "bad", "invalid", "other"]


@dataclass(frozen=True, slots=True)
class Bar:
    """A count and its kind, which is its colour."""

    label: str
    count: int
    kind: Kind = "other"


@dataclass(frozen=True, slots=True)
class BarChart:
    """Counts, in the order of their display."""

    title: str
    bars: tuple[Bar, ...]
    unit: str = "samples"


def draw_bars(data: BarChart, width: float = WIDTH) -> Drawing:
    """Return a bar per count, with the count and its share of all."""
    total = sum(bar.count for bar in data.bars)
    most = max((bar.count for bar in data.bars), default=0) or 1
    figures = {bar: f"{bar.count:,}  ({100 * bar.count / (total or 1):.1f} %)" for bar in data.bars}
    left = min(max((measure(bar.label) for bar in data.bars), default=0.0), LABELS) + 12
    room = width - left - max(map(measure, figures.values()), default=0.0) - 12
    body = []
    for index, bar in enumerate(data.bars):
        y = ROW * index + ROW / 2
        wide = max(room * bar.count / most, 1.5 if bar.count else 0)
        body.append(text(left - 12, y + 4, bar.label, anchor="end", width=left - 12))
        if wide:
            body.append(
                element(
                    "rect", tooltip(f"{bar.label}: {figures[bar]} {data.unit}"), x=left,
                    y=y - BAR / 2, width=wide, height=BAR, rx=2, fill=colour(bar.kind),
                )
            )  # fmt: skip
        body.append(text(left + wide + 8, y + 4, figures[bar], fill=colour("muted")))
    words = "; ".join(f"{bar.label} {figures[bar]}" for bar in data.bars)
    return Drawing(
        width, ROW * max(1, len(data.bars)), data.title,
        f"Bar chart of {total:,} {data.unit}. {words}.", "".join(body),
        f"{total:,} {data.unit}",
    )  # fmt: skip
