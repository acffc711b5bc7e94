"""Plots of results: what ``--plot`` writes and pages show."""

from assay.report.figures.boards import draw_board
from assay.report.figures.comparisons import draw_comparison, draw_family
from assay.report.figures.files import check_plot_file, write_plot
from assay.report.figures.history import draw_runs

__all__ = [
    "check_plot_file", "draw_board", "draw_comparison", "draw_family", "draw_runs", "write_plot",
]  # fmt: skip
