"""Draw plots as SVG: pure functions from typed data to a ``Drawing``.

``Drawing.embed`` gives the text for a page, ``standalone`` that of a file.
"""

from assay.report.plots.bars import Bar, BarChart, draw_bars
from assay.report.plots.divergence import DivergenceCurve, draw_divergence
from assay.report.plots.forest import Difference, Forest, draw_forest
from assay.report.plots.heat_map import HeatMap, HeatRow, draw_heat_map
from assay.report.plots.histogram import Histogram, HistogramGroup, draw_histogram
from assay.report.plots.over_time import Moment, Track, draw_history
from assay.report.plots.palette import css_variables
from assay.report.plots.pass_at_k import PassAtK, PassCurve, draw_pass_curves
from assay.report.plots.scatter import Dot, Scatter, draw_scatter
from assay.report.plots.svg import Drawing, plot_style
from assay.report.plots.throughput import Speed, SpeedCurve, draw_speed_curves

__all__ = [
    "Bar", "BarChart", "Difference", "DivergenceCurve", "Dot", "Drawing", "Forest", "HeatMap",
    "HeatRow", "Histogram", "HistogramGroup", "Moment", "PassAtK", "PassCurve", "Scatter", "Speed",
    "SpeedCurve", "Track", "css_variables", "draw_bars", "draw_divergence", "draw_forest",
    "draw_heat_map", "draw_histogram", "draw_history", "draw_pass_curves", "draw_scatter",
    "draw_speed_curves", "plot_style",
]  # fmt: skip
