"""Pages of real runs of every benchmark: each is judged once, and all are in one report."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from assay import benchmarks
from assay.errors import AssayError, DataError
from assay.sandbox.environments import store as environments
from tests.benchmarks.test_own import GOOD
from tests.browser.chromium import Watch, find_violations
from tests.browser.reports import score_references, write_report
from tests.browser.test_report import find_key, go
from tests.skips import SHARED_DATA

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
OWN = "toys"  # a file of the user's own: calls, standard input and test code
# One of every family; the others differ from it in their problems only.
BENCHMARKS = (
    "mini", "humaneval", "humanevalplus", "mbpp", "mbppplus", "bigcodebench", "evoeval-tool-use",
    "humaneval-pro", "mbpp-pro", "humanevalfix", "canitedit", "leetcodedataset", "cruxeval-i",
    "cruxeval-o", "humaneval-infilling-single-line", "humaneval-infilling-random-span-light", OWN,
)  # fmt: skip
COMPARED = ("mini", "cruxeval-o", "humaneval-infilling-single-line", OWN)  # cheap, and different
PROBLEMS = 3


class Tour:
    """One report of all runs, in one page. ``missing`` says why a benchmark has no run."""

    def __init__(self, folder: Path, browser: Browser) -> None:
        self.runs: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        (folder / f"{OWN}.yaml").write_text(GOOD)
        for name in BENCHMARKS:
            try:
                self._score(folder, name)
            except DataError as error:
                if SHARED_DATA.is_dir():
                    raise
                self.missing[name] = f"the data of this test is not here: {error}"
        self.report = write_report(folder / "results", folder / "report.html")
        self.watch = Watch(self.report.as_uri())
        self.context = browser.new_context(viewport={"width": 1280, "height": 900})
        self.page: Page = self.context.new_page()
        self.watch.attach(self.page)
        self.page.goto(f"{self.report.as_uri()}#overview")
        self.page.locator("html.ready").wait_for()

    def _score(self, folder: Path, name: str) -> None:
        source = str(folder / f"{OWN}.yaml") if name == OWN else name
        if environment := benchmarks.load(source).environment:
            try:
                environments.find(environment)
            except AssayError as error:
                self.missing[name] = str(error)
                return
        self.runs[name] = score_references(folder, source, "model-a", (1,), problems=PROBLEMS).run
        if name in COMPARED:
            score_references(folder, source, "model-b", (2,), problems=PROBLEMS)
        gc.collect()  # all problems of a benchmark are large


@pytest.fixture(scope="module")
def tour(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, _environment: None
) -> Iterator[Tour]:
    found = Tour(tmp_path_factory.mktemp("benchmarks"), browser)
    yield found
    found.context.close()


@pytest.mark.parametrize("name", BENCHMARKS)
def test_runs_of_every_benchmark_are_shown(name: str, tour: Tour) -> None:
    if name in tour.missing:
        pytest.skip(tour.missing[name])
    page, key = tour.page, f"run/{tour.runs[name]}"
    go(page, key)
    rows = page.locator(".page:not([hidden]) .grid-body .grid-row")
    rows.first.wait_for()
    assert rows.count() == PROBLEMS
    rows.nth(1).click()
    page.locator(".verdict-card.fail").wait_for()
    page.locator(".texts .line").first.wait_for()
    assert page.locator("section[aria-label=Prompt] .line").count() > 0
    page.keyboard.press("j")
    page.locator(".verdict-card.pass").wait_for()
    assert key in page.url
    assert tour.watch.problems == []


@pytest.mark.parametrize("name", COMPARED)
def test_programs_of_different_kinds_are_compared(name: str, tour: Tour) -> None:
    if name in tour.missing:
        pytest.skip(tour.missing[name])
    go(tour.page, find_key(tour.report, "compare/", "model-b against model-a", name))
    shown = tour.page.locator(".page:not([hidden]) .side-by-side")
    shown.locator("tr.changed, tr.removed").first.wait_for()
    assert tour.watch.problems == []


def test_a_leaderboard_of_many_benchmarks_is_accessible(tour: Tour) -> None:
    go(tour.page, "board")
    board = tour.page.locator(".page:not([hidden])")
    assert board.locator("table.compact").count() > 0
    assert tour.page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert find_violations(tour.page) == []
    assert tour.watch.problems == []
