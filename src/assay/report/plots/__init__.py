"""Draw plots as SVG: pure functions from typed data to a ``Drawing``.

``Drawing.embed`` gives the text for a page, ``standalone`` that of a file.
"""

from assay.report.plots.bars import (
    Bar,
    Histogram,
    HistogramGroup,
    draw_bars,
    draw_histogram,
)
from assay.report.plots.curves import (
    Line,
    Point,
    draw_divergence,
    draw_history,
    draw_pass_curves,
    draw_speed_curves,
)
from assay.report.plots.forest import Difference, Forest, draw_forest
from assay.report.plots.heat_map import HeatMap, HeatRow, draw_heat_map
from assay.report.plots.scatter import Dot, Scatter, draw_scatter
from assay.report.plots.svg import Drawing, css_variables

__all__ = [
    "Bar", "Difference", "Dot", "Drawing", "Forest", "HeatMap", "HeatRow", "Histogram",
    "HistogramGroup", "Line", "Point", "Scatter", "css_variables", "draw_bars", "draw_divergence",
    "draw_forest", "draw_heat_map", "draw_histogram", "draw_history", "draw_pass_curves",
    "draw_scatter", "draw_speed_curves",
]  # fmt: skip
