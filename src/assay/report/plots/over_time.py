"""Draw scores over time."""

from __future__ import annotations

from dataclasses import dataclass

from assay.data.printable import quantity
from assay.report.plots.lines import Line, LineChart, Point, draw_lines, value_range
from assay.report.plots.scales import DAY, describe_period, linear_ticks, time_ticks
from assay.report.plots.svg import Drawing


@dataclass(frozen=True, slots=True)
class Moment:
    """The score of a run, between 0 and 1, and its time in seconds since 1970 (UTC)."""

    time: float
    value: float
    low: float
    high: float
    run: str = ""


@dataclass(frozen=True, slots=True)
class Track:
    """The runs of one model that are comparable, in any order."""

    label: str
    moments: tuple[Moment, ...]


def draw_history(tracks: tuple[Track, ...], score: str = "pass@1", name: str = "") -> Drawing:
    """Return the scores of every track over time, with their intervals."""
    lines = tuple(
        Line(
            track.label,
            tuple(
                Point(
                    m.time, m.value, m.low, m.high,
                    f"{100 * m.value:.1f} % [{100 * m.low:.1f}, {100 * m.high:.1f}] {m.run}",
                )
                for m in sorted(track.moments, key=lambda one: one.time)
            ),
        )
        for track in tracks
    )  # fmt: skip
    times = [m.time for track in tracks for m in track.moments] or [0.0]
    first, last = min(times), max(times)
    if last - first < 60:
        first, last = first - DAY / 2, last + DAY / 2
    low, high = value_range(lines)
    words = "; ".join(
        f"{line.label}: {100 * line.points[0].y:.1f} % to {100 * line.points[-1].y:.1f} % "
        f"in {quantity(len(line.points), 'run')}"
        for line in lines
        if line.points
    )
    return draw_lines(
        LineChart(
            title=f"{score} over time{f' on {name}' if name else ''}",
            description=f"Line plot with intervals. {words}.",
            lines=lines,
            x_name=f"time of the run (UTC), {describe_period(first, last)}",
            y_name=score,
            x_ticks=tuple(time_ticks(first, last)),
            y_ticks=tuple(linear_ticks(low, min(high, 1.0), percent=True)),
            x_range=(first, last),
            subtitle="Bars are the runs' intervals",
        )
    )
