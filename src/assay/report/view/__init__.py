"""Serve report pages for a results folder, up to date while runs go on."""

from assay.report.view.notebook import HEIGHT, View, open_view
from assay.report.view.server import PORT, ViewServer

__all__ = ["HEIGHT", "PORT", "View", "ViewServer", "open_view"]
