"""Serve report pages for a results folder, up to date while runs go on."""

from assay.data.guard import HOST, read_token
from assay.report.view.notebook import HEIGHT, View, open_view
from assay.report.view.server import PORT, ViewServer

__all__ = ["HEIGHT", "HOST", "PORT", "View", "ViewServer", "open_view", "read_token"]
