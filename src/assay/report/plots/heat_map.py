"""Draw which model passes which problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from assay.report.plots.axes import WIDTH
from assay.report.plots.svg import LEVELS, Drawing, colour, element, measure, number, text

LABELS, FIGURES = 210.0, 62.0
ROW, FEW = 22.0, 30
LONGEST_NAME = 110.0
INVALID = -1
MISSING = -2


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A model and its share of passed samples for every problem.

    None: the problem was not judged. A negative number: every verdict on it is invalid.
    """

    label: str
    shares: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Problems by models; every row has as many shares as there are problems."""

    problems: tuple[str, ...]
    rows: tuple[HeatRow, ...]
    title: str = "Problems by model"


def order_problems(data: HeatMap) -> list[int]:
    """Return the problems' positions from the easiest to the hardest, ties by their pattern."""

    def key(index: int) -> tuple[float, tuple[float, ...], int]:
        column = [row.shares[index] for row in data.rows]
        known = [max(share, 0.0) for share in column if share is not None]
        mean = sum(known) / len(known) if known else -1.0
        return (-mean, tuple(-(2 if s is None else s) for s in column), index)

    return sorted(range(len(data.problems)), key=key)


def level_of(share: float | None) -> int:
    """Return the level of a cell. Only a share of 1 has the highest, only one of 0 the lowest."""
    if share is None:
        return MISSING
    if share < 0:
        return INVALID
    if share >= 1:
        return LEVELS - 1
    return 0 if share == 0 else 1 + int(share * (LEVELS - 2))


def draw_heat_map(data: HeatMap, width: float = WIDTH) -> Drawing:
    """Return one row per model, best first, and one column per problem, easiest first.

    A row is a path per level, of runs of equal cells. So a map of 1,140 problems and 12 models
    stays below 100 kB.
    """
    order = order_problems(data)
    rows = sorted(data.rows, key=lambda row: -_mean(row))
    left = min(max((measure(row.label) for row in rows), default=0.0), LABELS) + 12
    wide = width - left - FIGURES
    cell = wide / max(1, len(order))
    body = [text(width, 14, "solved", anchor="end", fill=colour("muted"))]
    top = 22.0
    for index, row in enumerate(rows):
        y = top + ROW * index
        body.append(text(left - 12, y + ROW / 2 + 3, row.label, anchor="end", width=left - 12))
        body.append(text(width, y + ROW / 2 + 3, f"{100 * _mean(row):.1f} %", anchor="end"))
    body.append(_draw_cells([[level_of(row.shares[i]) for i in order] for row in rows], left, top,
                            cell))  # fmt: skip
    bottom = top + ROW * len(rows)
    names, tall = _draw_names(data, order, left, bottom, cell)
    legend_y = bottom + tall + 8
    body += [names, _draw_legend(rows, left, legend_y, width)]
    return Drawing(
        width, legend_y + 16, data.title, _describe(data, rows), "".join(body),
        f"{len(order):,} problems, easiest left; models, best on top",
    )  # fmt: skip


def _mean(row: HeatRow) -> float:
    known = [max(share, 0.0) for share in row.shares if share is not None]
    return sum(known) / len(known) if known else 0.0


def _describe(data: HeatMap, rows: Sequence[HeatRow]) -> str:
    columns = list(zip(*(row.shares for row in data.rows), strict=True))
    every = sum(all(s == 1 for s in column) for column in columns)
    none = sum(all(s is not None and s <= 0 for s in column) for column in columns)
    words = "; ".join(f"{row.label} {100 * _mean(row):.1f} %" for row in rows)
    return (
        f"Heat map of {len(data.problems):,} problems by {len(rows)} models. Every model solves "
        f"{every:,}, no model {none:,}. {words}."
    )


def _draw_cells(levels: Sequence[Sequence[int]], left: float, top: float, cell: float) -> str:
    """Return a path per level: a thick line for every run of equal cells."""
    paths: dict[int, list[str]] = {}
    for index, row in enumerate(levels):
        at = 0
        pen: dict[int, int] = {}
        for level, run in groupby(row):
            count = sum(1 for _ in run)
            if level != MISSING:
                path = paths.setdefault(level, [])
                start = f"M{at} {index}" if level not in pen else f"m{at - pen[level]} 0"
                path.append(f"{start}h{count}")
                pen[level] = at + count
            at += count
    drawn = [
        element("path", d="".join(path), stroke=_level_colour(level))
        for level, path in sorted(paths.items())
    ]
    place = f"translate({number(left)} {number(top + ROW / 2)}) scale({cell:.5f} {number(ROW)})"
    return element(
        "g", *drawn, transform=place, fill="none", stroke_width=0.86,
        shape_rendering="crispEdges" if cell >= 1 else "auto",
    )  # fmt: skip


def _level_colour(level: int) -> str:
    return colour("invalid") if level == INVALID else colour(f"level{level}")


def _draw_names(
    data: HeatMap, order: Sequence[int], left: float, bottom: float, cell: float
) -> tuple[str, float]:
    """Return the problems' names below the cells if they are few, and the height that takes."""
    if len(order) > FEW or cell < 12:
        return "", 4.0
    longest = max((measure(data.problems[i], 10) for i in order), default=0.0)
    names = [
        text(left + cell * (n + 0.5) + 3, bottom + 8, data.problems[i], size=10, anchor="end",
             rotate=-90, width=LONGEST_NAME)
        for n, i in enumerate(order)
    ]  # fmt: skip
    return element("g", *names, fill=colour("muted")), min(longest, LONGEST_NAME) + 14


def _draw_legend(rows: Sequence[HeatRow], left: float, y: float, width: float) -> str:
    levels = {level_of(share) for row in rows for share in row.shares}
    between = any(0 < level < LEVELS - 1 for level in levels)
    shown = range(LEVELS) if between else (0, LEVELS - 1)
    keys = [(_level_colour(n), _name_level(n)) for n in shown]
    if INVALID in levels:
        keys.append((colour("invalid"), "invalid"))
    heading = "samples that pass:"
    wide = measure(heading) + sum(measure(label) + 28 for _, label in keys)
    left = max(0.0, min(left, width - wide))
    parts = [text(left, y + 10.5, heading, fill=colour("muted"))]
    x = left + measure(heading) + 10
    for fill, label in keys:
        parts.append(element("rect", x=x, y=y, width=12, height=12, rx=2, fill=fill))
        parts.append(text(x + 17, y + 10.5, label, fill=colour("muted")))
        x += measure(label) + 28
    return "".join(parts)


def _name_level(level: int) -> str:
    step = 100 / (LEVELS - 2)
    between = f"{(level - 1) * step:.0f}–{level * step:.0f} %"
    return {0: "none", LEVELS - 1: "all"}.get(level, between)
