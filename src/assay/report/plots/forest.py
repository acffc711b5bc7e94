"""Draw differences to a baseline with their intervals: a forest plot."""

from __future__ import annotations

from dataclasses import dataclass

from assay.report.plots import axes
from assay.report.plots.svg import Drawing, colour, element, measure, number, text, tooltip

ROW, TOP = 30.0, 30.0
LABELS, FIGURES, WORDS = 210.0, 140.0, 110.0  # widths of the columns; labels: at most
# Colour and shape by decision; what is in no row of this table is drawn as undecided.
STYLES: dict[str, tuple[str, int]] = {
    "better": ("good", 3),
    "worse": ("bad", 4),
    "equivalent": ("equal", 1),
    "undecided": ("other", 0),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference to the baseline with its interval, as shares: 0.02 is two points."""

    label: str
    value: float
    low: float
    high: float
    decision: str = "undecided"  # better, worse, equivalent or undecided


@dataclass(frozen=True, slots=True)
class Forest:
    """Differences of one score to one baseline. Within the margin, models count as equivalent."""

    baseline: str
    rows: tuple[Difference, ...]
    margin: float | None = None
    level: float = 0.95
    title: str = ""


def draw_forest(data: Forest, width: float = axes.WIDTH) -> Drawing:
    """Return one row per difference: name, interval, figures and decision."""
    widest = max((measure(row.label) for row in data.rows), default=0.0)
    left = min(widest, LABELS) + 18
    frame = axes.Frame(left, TOP, width - FIGURES - WORDS, TOP + ROW * max(1, len(data.rows)) + 6)
    ends = [100 * v for row in data.rows for v in (row.low, row.high, row.value)]
    margin = 100 * (data.margin or 0.0)
    ticks = axes.linear_ticks(min([*ends, -margin, -1.0]), max([*ends, margin, 1.0]), 6)
    x = axes.Scale(ticks[0].value, ticks[-1].value, frame.left, frame.right)
    right = frame.right + FIGURES
    zero = f"M{number(x.place(0))} {number(frame.top - 4)}V{number(frame.bottom)}"
    body = [
        _draw_margin(frame, x, margin) if data.margin else "",
        axes.draw_x_axis(frame, x, ticks, "difference in pass@1, points (right is better)"),
        axes.draw_baseline(frame),
        element("path", d=zero, stroke=colour("axis"), fill="none", stroke_width=1.3),
        element(
            "g",
            text(right, 14, f"points [{100 * data.level:.4g} %]", anchor="end"),
            text(right + 16, 14, "decision"),
            fill=colour("muted"),
        ),
    ]
    for index, row in enumerate(data.rows):
        body.append(_draw_row(row, frame, x, TOP + ROW * (index + 0.5) + 2, left))
    words = "; ".join(f"{row.label}: {_figures(row)} points, {row.decision}" for row in data.rows)
    shaded = f"; shaded: less than {100 * data.margin:g} points" if data.margin else ""
    return Drawing(
        width,
        frame.bottom + axes.AXIS_HEIGHT,
        data.title or f"Differences in pass@1 to {data.baseline}",
        f"Forest plot of differences in pass@1 to {data.baseline}. {words}.",
        "".join(body),
        f"{100 * data.level:.4g} % intervals{shaded}",
    )


def _draw_margin(frame: axes.Frame, x: axes.Scale, margin: float) -> str:
    start, end = x.place(-margin), x.place(margin)
    return element(
        "rect", x=start, y=frame.top, width=end - start, height=frame.bottom - frame.top,
        fill=colour("zone"),
    )  # fmt: skip


def _figures(row: Difference) -> str:
    low, high = (axes.signed(100 * v) for v in (row.low, row.high))
    return f"{axes.signed(100 * row.value)} [{low}, {high}]"


def _draw_row(row: Difference, frame: axes.Frame, x: axes.Scale, y: float, left: float) -> str:
    name, shape = STYLES.get(row.decision, STYLES["undecided"])
    stroke = colour(name)
    low, value, high = (x.place(100 * v) for v in (row.low, row.value, row.high))
    bar = (
        f"M{number(low)} {number(y)}H{number(high)}"
        f"M{number(low)} {number(y - 4)}v8M{number(high)} {number(y - 4)}v8"
    )
    right = frame.right + FIGURES
    return "".join(
        (
            text(0, y + 4, row.label, width=left - 18),
            element("path", tooltip(f"{row.label}: {_figures(row)}"), d=bar, stroke=stroke,
                    stroke_width=2, fill="none"),
            axes.draw_marker(value, y, stroke, f"{row.label}: {_figures(row)}", shape, 4.5),
            text(right, y + 4, _figures(row).replace("-", axes.MINUS), anchor="end"),
            axes.draw_marker(right + 20, y, stroke, "", shape, 4),
            text(right + 30, y + 4, row.decision, width=WORDS - 30),
        )
    )  # fmt: skip
