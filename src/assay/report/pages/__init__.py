"""Build report pages: sections of HTML that need no script, and data for the script.

``Site`` resolves keys to sections and names to data; ``render_document`` makes one HTML file.
"""

from assay.report.pages.document import render_document
from assay.report.pages.section import PageLink, Section
from assay.report.pages.site import Site
from assay.report.pages.sources import RunSource, Sources, open_sources

__all__ = [
    "PageLink",
    "RunSource",
    "Section",
    "Site",
    "Sources",
    "open_sources",
    "render_document",
]
