"""Resolve keys to sections, and names to data. Folders are read when they are requested."""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from assay import benchmarks
from assay.datasets.catalogue import find_data
from assay.errors import AssayError, DataError, RunError, UsageError
from assay.progress import Reporter, Silent
from assay.report.pages import compare_page
from assay.report.pages.board_page import BOARD, render_board
from assay.report.pages.document import render_document
from assay.report.pages.markup import PageLink, PageSection, join_key
from assay.report.pages.model_page import render_measurement
from assay.report.pages.overview_page import MOST_LISTED, OVERVIEW, render_overview
from assay.report.pages.run.blocks import build_index, build_texts, count_chunks
from assay.report.pages.run.data import RunData, load_run_data
from assay.report.pages.run.page import render_run
from assay.report.pages.sources import RunSource, Sources, open_sources
from assay.runs.checks.run_folder import read_checked_result
from assay.runs.compare import share_problems
from assay.types import Benchmark

SILENT = Silent()
MOST_PAIRS = 60  # comparisons in one file; a server makes any


class ReportSite:
    """The pages and data of some runs.

    Keys of pages are ``overview``, ``board``, ``run/NAME``, ``compare/A/B`` and ``model/KEY``;
    names of data are ``run/NAME``, ``run/NAME/texts/N`` and ``compare/A/B``. Parts are quoted as in
    addresses. The fragments of single samples, ``run/NAME/TASK/N``, are made by the script.
    """

    def __init__(
        self, sources: Sources, *, reporter: Reporter = SILENT, data_dir: Path | None = None
    ) -> None:
        self.sources = sources
        self._reporter, self._data_dir = reporter, data_dir
        self._runs = {run.key: run for run in sources.runs}
        self._measurements = {one.key: one for one in sources.measurements}
        self._loaded: dict[str, RunData] = {}
        self._compared: dict[tuple[str, str], compare_page.ComparedRuns] = {}
        self._benchmarks: dict[str, Benchmark] = {}

    def list_pages(self) -> list[PageLink]:
        """Return links to all pages: the overview first, comparisons of neighbours last."""
        links = [PageLink(OVERVIEW, "Overview", "")]
        if self.sources.runs:
            links.append(PageLink(BOARD, "Leaderboard", ""))
        links += [
            PageLink(join_key("run", run.key), run.model, run.entry.benchmark)
            for run in self.sources.runs
        ]
        links += [
            PageLink(join_key("model", one.key), one.title, "Models")
            for one in self.sources.measurements
        ]
        links += [
            PageLink(
                join_key("compare", a.key, b.key),
                f"{b.model} against {a.model} on {a.entry.benchmark}",
                "Comparisons",
            )
            for a, b in itertools.islice(self.list_pairs(), MOST_PAIRS)
        ]
        return links

    def list_pairs(self) -> Iterator[tuple[RunSource, RunSource]]:
        """Yield the pairs of finished runs that can be compared, the earlier run first."""
        finished = [run for run in reversed(self.sources.runs) if run.entry.result]
        later: dict[tuple[str, str], deque[RunSource]] = defaultdict(deque)
        for run in finished:
            later[_pair_key(run)].append(run)
        for a in finished:
            others = later[_pair_key(a)]
            others.popleft()  # itself
            for b in others:
                if _is_comparable(a, b):
                    yield a, b

    def section(self, key: str) -> PageSection:
        """Return a page. Raise UsageError for an unknown key."""
        kind, *names = map(unquote, key.split("/"))
        if (kind, len(names)) not in SECTIONS:
            raise UsageError(f"{key}: is not a page. Start from the overview.")
        return SECTIONS[kind, len(names)](self, *names)

    def block(self, name: str) -> Any:
        """Return data by its name. Raise UsageError for an unknown name."""
        kind, *names = map(unquote, name.split("/"))
        if (kind, len(names)) not in BLOCKS:
            raise UsageError(f"{name}: is not data of a page. Reload the page.")
        return BLOCKS[kind, len(names)](self, *names)

    def _overview(self) -> PageSection:
        # One more than are listed shows that there are more. To count them would take long.
        return render_overview(
            self.sources, list(itertools.islice(self.list_pairs(), MOST_LISTED + 1))
        )

    def _measurement(self, key: str) -> PageSection:
        if key not in self._measurements:
            raise UsageError(f"{key}: is not a measurement of this report. Choose another.")
        return render_measurement(self._measurements[key])

    def _texts(self, key: str, part: str, number: str) -> Any:
        data = self._load(key)
        if part != "texts" or number not in map(str, range(count_chunks(data))):
            raise UsageError(f"{key}: has no {part} {number}. Reload the page.")
        return build_texts(data, int(number))

    def list_blocks(self, key: str) -> Iterator[str]:
        """Yield the names of a page's own data."""
        kind, *names = map(unquote, key.split("/"))
        if kind in ("run", "compare"):
            yield key
        if kind == "run":
            for number in range(count_chunks(self._load(names[0]))):
                yield f"{key}/texts/{number}"

    def _find(self, key: str) -> RunSource:
        if key not in self._runs:
            raise UsageError(f"{key}: is not a run of this report. Choose another.")
        return self._runs[key]

    def _load(self, key: str) -> RunData:
        if key not in self._loaded:
            self._loaded[key] = load_run_data(self._find(key), self._load_benchmark)
        return self._loaded[key]

    def _load_benchmark(self, name: str) -> Benchmark:
        """Return a benchmark whose data is on this machine. Raise DataError otherwise."""
        if name not in self._benchmarks:
            description = benchmarks.benchmarks.describe(name)
            data = description.data if description else None
            if data and find_data(data, self._data_dir).state == "not here":
                raise DataError(
                    f"{name}: its data is not on this machine. "
                    f"Run `assay data download {data.name}`."
                )
            self._benchmarks[name] = benchmarks.load(name, self._reporter.note, self._data_dir)
        return self._benchmarks[name]

    def _compare(self, a: str, b: str) -> compare_page.ComparedRuns:
        if (a, b) not in self._compared:
            self._compared[a, b] = compare_page.compare_runs(self._find(a), self._find(b))
        return self._compared[a, b]

    def _list_comparisons(self, key: str) -> list[PageLink]:
        """Return the comparisons of a run, each named by the other model."""
        return [
            PageLink(join_key("compare", a.key, b.key), (b if a.key == key else a).model, "")
            for a, b in itertools.islice(self.list_pairs(), MOST_PAIRS)
            if key in (a.key, b.key)
        ]


# By kind and number of names in a key.
SECTIONS: dict[tuple[str, int], Callable[..., PageSection]] = {
    (OVERVIEW, 0): ReportSite._overview,
    (BOARD, 0): lambda site: render_board(site.sources),
    ("run", 1): lambda site, key: render_run(site._load(key), site._list_comparisons(key)),
    ("compare", 2): lambda site, a, b: compare_page.render_comparison(site._compare(a, b)),
    ("model", 1): ReportSite._measurement,
}
BLOCKS: dict[tuple[str, int], Callable[..., Any]] = {
    ("run", 1): lambda site, key: build_index(site._load(key)),
    ("run", 3): ReportSite._texts,
    ("compare", 2): lambda site, a, b: compare_page.compare_block(site._compare(a, b)),
}


def _pair_key(run: RunSource) -> tuple[str, str]:
    """Return what is the same for two runs that can be compared: the benchmark and the judge."""
    return run.entry.benchmark, run.entry.protocol.judge or ""


def _is_comparable(a: RunSource, b: RunSource) -> bool:
    one, other = a.entry.result, b.entry.result
    if one is None or other is None:
        return False
    try:
        return share_problems(one, other)
    except AssayError:
        return False


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
    wanted, links, sections = site.list_pages(), [], []
    blocks: dict[str, Any] = {}
    for done, link in enumerate(wanted):
        reporter.preparing("report", done, len(wanted))
        try:
            section = site.section(link.key)
            data = {name: site.block(name) for name in site.list_blocks(link.key)}
        except AssayError as error:
            warn(f"{link.title}: is left out. {error}")
            continue
        links.append(link)
        sections.append(section)
        blocks |= data
    names = sorted({run.entry.benchmark for run in sources.runs})
    usual = f"{', '.join(names)} · assay" if names else "assay"
    return render_document(sections, links, blocks, title=title or usual)
