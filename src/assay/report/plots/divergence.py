"""Draw how far two models' predictions are apart, by position in the text."""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.report.plots.lines import Line, LineChart, Point, draw_lines
from assay.report.plots.scales import linear_ticks, log_ticks
from assay.report.plots.svg import Drawing

MOST_POINTS = 600  # about one per pixel
LEAST, MOST = 1e-12, 1e6  # nats on the axis; what is below is noise


@dataclass(frozen=True, slots=True)
class DivergenceCurve:
    """KL divergences in nats per token, one for every position from the first on."""

    label: str
    values: tuple[float, ...]


def draw_divergence(curves: tuple[DivergenceCurve, ...]) -> Drawing:
    """Return KL by position on a logarithmic axis. Zeros are at the bottom."""
    positive = [v for curve in curves for v in curve.values if LEAST <= v <= MOST] or [0.1]
    low = 10.0 ** math.floor(math.log10(min(positive)))
    high = 10.0 ** math.ceil(math.log10(max(positive)))
    high = high if high > low else 10 * low
    count = max((len(curve.values) for curve in curves), default=1)
    return draw_lines(
        LineChart(
            title="KL divergence of the reference from the candidate",
            description="Line plot on a logarithmic axis, from "
            f"{min(positive):.3g} to {max(positive):.3g} nats per token over {count} positions.",
            lines=tuple(
                Line(curve.label, _thin(curve.values, low)) for curve in curves if curve.values
            ),
            x_name="position in the prompt (tokens)",
            y_name="KL, nats per token",
            x_ticks=tuple(linear_ticks(0, max(1, count - 1), 8)),
            y_ticks=tuple(log_ticks(low, high)),
            x_range=(0, max(linear_ticks(0, max(1, count - 1), 8)[-1].value, 1)),
            y_is_log=True,
            markers=False,
        )
    )


def _thin(values: tuple[float, ...], low: float) -> tuple[Point, ...]:
    """Return the points; of many, the largest of every few, since peaks are what matters."""
    step = math.ceil(len(values) / MOST_POINTS)
    known = [min(v, MOST) if math.isfinite(v) else 0.0 for v in values]
    found = []
    for start in range(0, len(known), step):
        at = max(range(start, min(start + step, len(known))), key=known.__getitem__)
        found.append(Point(at, max(known[at], low)))
    return tuple(found)
