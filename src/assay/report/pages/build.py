"""Build a report in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from assay.errors import AssayError, RunError
from assay.progress import Reporter, Silent
from assay.report.pages.document import render_document
from assay.report.pages.site import ReportSite
from assay.report.pages.sources import Sources, open_sources
from assay.runs.checks.run_folder import read_checked_result

SILENT = Silent()


def build_report(
    references: Sequence[str],
    *,
    results_dir: Path = Path("results"),
    title: str = "",
    data_dir: Path | None = None,
    reporter: Reporter = SILENT,
    warn: Callable[[str], None] | None = None,
) -> str:
    """Return one HTML document with all pages and data of the references.

    ``warn`` gets a line for everything that is left out. Raise RunError if nothing can be shown.
    """
    warn = warn or reporter.note
    sources = open_sources(references, results_dir, warn, read_checked_result)
    if not sources.runs and not sources.measurements:
        raise RunError(f"{results_dir}: has no runs. Start one with `assay eval`.")
    site = ReportSite(sources, reporter=reporter, data_dir=data_dir)
    wanted = site.list_pages()
    links, sections = [], []
    blocks: dict[str, Any] = {}
    for done, link in enumerate(wanted):
        reporter.preparing("report", done, len(wanted))
        try:
            section = site.section(link.key)
            found = {name: site.block(name) for name in site.list_blocks(link.key)}
        except AssayError as error:
            warn(f"{link.title}: is left out. {error}")
            continue
        links.append(link)
        sections.append(section)
        blocks |= found
    return render_document(sections, links, blocks, title=title or _title(sources))


def _title(sources: Sources) -> str:
    names = sorted({run.entry.benchmark for run in sources.runs})
    return f"{', '.join(names)} · assay" if names else "assay"
