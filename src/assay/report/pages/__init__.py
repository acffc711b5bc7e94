"""Build report pages: sections of HTML that need no script, and data for the script.

``ReportSite`` resolves keys to sections and names to data; ``render_document`` makes one HTML file.
"""

from assay.report.pages.document import render_document
from assay.report.pages.markup import PageLink, PageSection
from assay.report.pages.site import ReportSite
from assay.report.pages.sources import RunSource, Sources, open_sources

__all__ = [
    "PageLink", "PageSection", "ReportSite", "RunSource", "Sources", "open_sources",
    "render_document",
]  # fmt: skip
