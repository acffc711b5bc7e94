"""``assay report`` in a real browser: every page from real runs, filters, links, themes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from assay.report.pages import ReportSite, open_sources
from tests.browser.conftest import OpenPage
from tests.browser.reports import PROBLEMS, score_references, write_report
from tests.report.measurements import write_measurements

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
Check = Callable[["Page"], None]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, _environment: None) -> Path:
    """Return a report of two models on two benchmarks, with every kind of measurement."""
    folder = tmp_path_factory.mktemp("report")
    score_references(folder, "mini", "model-a", (1, 3))
    score_references(folder, "mini", "model-b", (3, 4))
    score_references(folder, "mini", "model-c", (2,), n_samples=4)
    score_references(folder, "humaneval", "model-a", (0,))
    write_measurements(folder / "results")
    return write_report(folder / "results", folder / "report.html")


def site_of(report: Path) -> ReportSite:
    return ReportSite(open_sources([], report.parent / "results"))


def find_key(report: Path, kind: str, *words: str) -> str:
    """Return the key of the first page of a kind whose title has these words."""
    return next(
        link.key
        for link in site_of(report).list_pages()
        if link.key.startswith(kind) and all(w in f"{link.title} {link.group}" for w in words)
    )


def go(page: Page, key: str) -> None:
    page.evaluate("key => { location.hash = key }", key)
    page.wait_for_function("document.querySelector('main > .page:not([hidden])') !== null")


def open_at(open_page: OpenPage, report: Path, key: str, **options: object) -> Page:
    page = open_page(f"{report.as_uri()}#{key}", **options)
    page.locator("html.ready").wait_for()
    return page


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_page_opens_and_is_accessible(
    open_page: OpenPage, report: Path, check_accessibility: Check, dark: bool
) -> None:
    page = open_at(open_page, report, "overview", dark=dark)
    for link in site_of(report).list_pages():
        go(page, link.key)
        shown = page.locator("main > .page:not([hidden])")
        shown.locator("h1").wait_for()
        assert shown.get_attribute("id") == link.key
        assert page.locator(".failure").count() == 0
        page.wait_for_timeout(200)
        check_accessibility(page)


def test_filters_sorting_and_search_are_part_of_the_address(
    open_page: OpenPage, report: Path
) -> None:
    run = find_key(report, "run/", "model-a", "mini")
    page = open_at(open_page, report, run)
    shown = page.locator(".page:not([hidden])")
    rows = shown.locator(".grid-body .grid-row")
    rows.first.wait_for()
    shown.get_by_role("button", name="fail").click()
    assert rows.count() == 2
    assert page.url.endswith("?status=fail")
    shown.get_by_role("columnheader", name="Problem").get_by_role("button").click()
    shown.get_by_role("columnheader", name="Problem").get_by_role("button").click()
    assert [text.split()[0] for text in rows.all_inner_texts()] == ["mini/3", "mini/1"]
    assert "sort=-task" in page.url
    shown.get_by_role("searchbox", name="Search").fill("mini/1")
    assert rows.count() == 1
    again = open_at(open_page, report, page.url.partition("#")[2])
    again.locator(".page:not([hidden]) .grid-body .grid-row").first.wait_for()
    assert again.locator(".page:not([hidden]) .grid-body .grid-row").count() == 1
    shown.get_by_role("button", name="Clear").click()
    assert rows.count() == PROBLEMS
    shown.get_by_label("Reason").select_option("wrong-answer")
    assert rows.count() == 2
    shown.get_by_label("Reason").select_option("")
    shown.get_by_role("searchbox", name="Search").fill("return object()")
    shown.get_by_text("No row matches the filters.").wait_for()
    shown.get_by_label("in code").check()
    rows.first.wait_for()
    assert rows.count() == 2


def test_a_deep_link_opens_a_sample_with_its_neighbours(open_page: OpenPage, report: Path) -> None:
    run = find_key(report, "run/", "model-a", "mini")
    page = open_at(open_page, report, f"{run}/mini%2F3/0?status=fail")
    page.locator(".verdict-card.fail").wait_for()
    assert page.get_by_text("2 of 2").is_visible()
    assert page.locator("h1:visible").inner_text() == "mini/3"
    page.keyboard.press("k")
    page.get_by_role("heading", name="mini/1").wait_for()
    assert page.get_by_text("1 of 2", exact=True).is_visible()
    page.get_by_role("button", name="Answer", exact=True).click()
    assert page.get_by_text("Here:", exact=True).is_visible()
    page.get_by_role("button", name="Answer → program").click()
    page.locator(".unified .line.removed").first.wait_for()
    page.keyboard.press("u")
    page.locator(".grid-body .grid-row").first.wait_for()
    assert page.url.endswith(f"#{run}?status=fail")


def test_samples_with_the_same_program_stand_together(open_page: OpenPage, report: Path) -> None:
    run = find_key(report, "run/", "model-c")
    page = open_at(open_page, report, f"{run}/mini%2F2/1")
    page.locator(".siblings").wait_for()
    assert page.get_by_text("1 of 4 samples pass · 2 different programs").is_visible()
    groups = page.locator(".siblings .group")
    assert [group.locator("a").count() for group in groups.all()] == [1, 3]
    page.get_by_role("link", name="sample 0, pass").click()
    page.locator(".verdict-card.pass").wait_for()


def test_a_comparison_is_stepped_through_by_keyboard(open_page: OpenPage, report: Path) -> None:
    key = find_key(report, "compare/", "model-b", "model-a", "mini")
    page = open_at(open_page, report, key)
    page.get_by_role("heading", name="mini/1 gained").wait_for()
    assert page.locator(".side-by-side").is_visible()
    page.keyboard.press("j")
    page.get_by_role("heading", name="mini/4 lost").wait_for()
    assert page.url.endswith(f"#{key}/mini%2F4")
    page.get_by_role("button", name="Gained").click()
    assert page.locator(".flip-list .grid-body .grid-row").count() == 1
    page.get_by_role("button", name="Both fail").click()
    page.locator(".flip-list .grid-body").get_by_text("mini/3").wait_for()


def test_the_theme_is_the_readers_choice(open_page: OpenPage, report: Path) -> None:
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    page = open_at(open_page, report, "overview")
    light = page.evaluate(ground)
    page.get_by_role("button", name="Theme: Auto").click()
    page.get_by_role("button", name="Theme: Light").click()
    page.get_by_role("button", name="Theme: Dark").wait_for()
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    page.locator("html.ready").wait_for()
    assert page.evaluate(ground) == dark
    assert open_at(open_page, report, "overview", dark=True).evaluate(ground) == dark


def test_pages_are_found_by_name(open_page: OpenPage, report: Path) -> None:
    page = open_at(open_page, report, "overview")
    page.keyboard.press("g")
    page.get_by_role("searchbox", name="Page").fill("leader")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Leaderboard").wait_for()
    page.keyboard.press("?")
    page.get_by_text("next, previous problem").wait_for(timeout=10_000)
    page.keyboard.press("Escape")


def test_main_numbers_and_plots_need_no_script(open_page: OpenPage, report: Path) -> None:
    page = open_page(report, java_script_enabled=False)
    assert page.get_by_role("heading", name="Leaderboard").is_visible()
    assert page.get_by_text("60.0").first.is_visible()
    plots = page.locator("svg.assay-plot")
    assert plots.count() > 10
    assert plots.first.is_visible()


def test_a_printed_page_has_no_controls(open_page: OpenPage, report: Path) -> None:
    page = open_at(open_page, report, find_key(report, "run/", "model-a", "mini"))
    page.locator(".grid-row").first.wait_for()
    page.emulate_media(media="print")
    assert not page.locator(".top").is_visible()
    assert page.locator(".big:visible").first.is_visible()


def test_a_narrow_screen_scrolls_only_inside_tables(open_page: OpenPage, report: Path) -> None:
    size = {"width": 420, "height": 900}
    for kind in ("overview", "board", "run/", "compare/"):
        key = kind if not kind.endswith("/") else find_key(report, kind)
        page = open_at(open_page, report, key, viewport=size)
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
