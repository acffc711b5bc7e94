"""Draw pass@k by k."""

from __future__ import annotations

from dataclasses import dataclass

from assay.report.plots.axes import WIDTH
from assay.report.plots.lines import Line, LineChart, Point, draw_lines, value_range
from assay.report.plots.scales import Tick, linear_ticks
from assay.report.plots.svg import Drawing


@dataclass(frozen=True, slots=True)
class PassAtK:
    """An estimate of pass@k with its interval, all between 0 and 1."""

    k: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PassCurve:
    """The estimates of one run, by k."""

    label: str
    estimates: tuple[PassAtK, ...]


def draw_pass_curves(
    curves: tuple[PassCurve, ...], level: float = 0.95, width: float = WIDTH
) -> Drawing:
    """Return pass@k with a band for every run."""
    lines = tuple(
        Line(
            curve.label,
            tuple(
                Point(
                    e.k, e.value, e.low, e.high,
                    f"pass@{e.k} {100 * e.value:.1f} % [{100 * e.low:.1f}, {100 * e.high:.1f}]",
                )
                for e in sorted(curve.estimates, key=lambda one: one.k)
            ),
        )
        for curve in curves
    )  # fmt: skip
    numbers = sorted({int(p.x) for line in lines for p in line.points}) or [1]
    low, high = value_range(lines)
    words = "; ".join(
        f"{curve.label}: " + ", ".join(f"pass@{e.k} {100 * e.value:.1f} %" for e in curve.estimates)
        for curve in curves
    )
    last = max(numbers[-1], numbers[0] * 2)
    return draw_lines(
        LineChart(
            width=width,
            title="pass@k by number of samples",
            description=f"Line plot with bands. {words}.",
            lines=lines,
            x_name="k, samples per problem",
            y_name="pass@k",
            x_ticks=tuple(Tick(k, str(k)) for k in numbers),
            y_ticks=tuple(linear_ticks(low, min(high, 1.0), percent=True)),
            x_range=(numbers[0], last),
            x_is_log=True,
            bands=True,
            subtitle=f"Bands are {100 * level:g} % intervals",
        )
    )
