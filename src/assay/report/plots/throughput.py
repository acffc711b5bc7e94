"""Draw the speed of a model by the number of sequences that it generates at once."""

from __future__ import annotations

from dataclasses import dataclass

from assay.report.plots.lines import Line, LineChart, Point, draw_lines, value_range
from assay.report.plots.scales import Tick, linear_ticks
from assay.report.plots.svg import Drawing


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens per second of all sequences together: median, minimum and maximum of the rounds."""

    sequences: int
    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SpeedCurve:
    """The speeds of one model by the number of sequences."""

    label: str
    speeds: tuple[Speed, ...]


def draw_speed_curves(curves: tuple[SpeedCurve, ...]) -> Drawing:
    """Return tokens per second by number of sequences, with the range of the rounds."""
    lines = tuple(
        Line(
            curve.label,
            tuple(
                Point(
                    s.sequences, s.median, s.low, s.high,
                    f"{s.sequences} sequences: {s.median:,.1f} tokens/s "
                    f"[{s.low:,.1f}, {s.high:,.1f}]",
                )
                for s in sorted(curve.speeds, key=lambda one: one.sequences)
            ),
        )
        for curve in curves
    )  # fmt: skip
    numbers = sorted({int(p.x) for line in lines for p in line.points}) or [1]
    alone = curves[0].label if len(curves) == 1 else ""
    words = "; ".join(
        f"{curve.label}: " + ", ".join(f"{s.median:,.1f} with {s.sequences}" for s in curve.speeds)
        for curve in curves
    )
    return draw_lines(
        LineChart(
            title=f"Throughput by batch size{f': {alone}' if alone else ''}",
            description=f"Line plot of tokens per second by number of sequences. {words}.",
            lines=lines,
            x_name="sequences at once",
            y_name="tokens/s",
            x_ticks=tuple(Tick(count, str(count)) for count in numbers),
            y_ticks=tuple(linear_ticks(0.0, max(value_range(lines)[1], 1e-9))),
            x_range=(numbers[0], max(numbers[-1], numbers[0] * 2)),
            x_is_log=True,
            subtitle="Median of the rounds; bars are the minimum and maximum",
        )
    )
