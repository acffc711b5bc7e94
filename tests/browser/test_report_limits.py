"""Reports at their limits: texts that try to break out, and 11,400 samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import OpenPage
from tests.browser.reports import PROPERTIES, write_hostile_report, write_large_report
from tests.browser.test_report import Check, find_key, go, open_at
from tests.report.run_folders import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
OPENS_WITHIN_MS = 2_000  # on a machine with nothing else to do
BUSY = 5  # times as long on a busy one


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hostile_report(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def large(
    tmp_path_factory: pytest.TempPathFactory,
    _environment: None,
    shared_data: Path,  # noqa: ARG001 - its texts
) -> Path:
    return write_large_report(tmp_path_factory.mktemp("large"))


def sample_address(report: Path, name: str) -> str:
    run = find_key(report, "run/", "onerror")
    return f"{run}/" + "toy%2F" + name.replace(" ", "%20") + "%3Cb%3E%E2%80%AE/0"


def is_harmless(page: Page) -> bool:
    """Report whether nothing of a sample was executed or became an element."""
    found = page.evaluate(
        "[window.hacked, document.querySelectorAll('img, base, iframe, main style').length]"
    )
    return bool(found == [None, 0])


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_samples_are_shown_as_text(name: str, open_page: OpenPage, hostile: Path) -> None:
    page = open_at(open_page, hostile, sample_address(hostile, name))
    page.locator(".verdict-card.fail").wait_for()
    if name != "empty":  # without a program, its page shows the answer alone and has no button
        page.get_by_role("button", name="Answer", exact=True).click()
    page.locator(".texts pre").first.wait_for()
    assert is_harmless(page)
    assert page.locator("h1:visible").inner_text() == f"toy/{name}<b>\\u202e"


def test_hidden_characters_are_visible(open_page: OpenPage, hostile: Path) -> None:
    page = open_at(open_page, hostile, sample_address(hostile, "bidi"))
    page.locator(".texts .ctl").first.wait_for()
    shown = page.locator(".texts .lines").first.inner_text()
    assert "user\\u202e \\u2066// only admins\\u2069 \\u2066' \\u200b\\u200e\\ufeff" in shown
    go(page, sample_address(hostile, "surrogates"))
    page.get_by_text("\\ud800").first.wait_for()
    assert page.get_by_text("\\x00").first.is_visible()
    go(page, sample_address(hostile, "ansi"))
    page.get_by_text("\\x1b").first.wait_for()


def test_a_task_without_an_address_of_its_own_opens(open_page: OpenPage, hostile: Path) -> None:
    page = open_at(open_page, hostile, find_key(hostile, "run/", "onerror"))
    rows = page.locator(".page:not([hidden]) .grid-body .grid-row")
    rows.filter(has_text="half").click()
    page.locator(".verdict-card.pass").wait_for()
    assert page.locator("h1:visible").inner_text() == "toy/half \\ud800"


def test_tasks_with_names_of_properties_open(open_page: OpenPage, hostile: Path) -> None:
    run = find_key(hostile, "run/", "onerror")
    page = open_at(open_page, hostile, f"{run}/{PROPERTIES[0]}/0")
    for name in PROPERTIES:
        go(page, f"{run}/{name}/0")
        page.get_by_role("heading", name=name, exact=True).wait_for()
        page.locator(".texts .line").first.wait_for()
    go(page, f"{run}?sort=constructor&status=toString&solved=valueOf&cluster=__proto__")
    page.get_by_text("No row matches the filters.").wait_for()
    go(page, f"{run}?sort=nothing")
    page.locator(".page:not([hidden]) .grid-row").nth(5).wait_for()


def test_megabytes_on_one_line_are_shortened(open_page: OpenPage, hostile: Path) -> None:
    page = open_at(open_page, hostile, sample_address(hostile, "one line"))
    page.get_by_role("button", name="Answer", exact=True).click()
    page.get_by_role("button", name="2,996,000 more characters").wait_for()
    assert page.evaluate("document.body.innerText.length") < 200_000
    page.keyboard.press("j")  # still usable
    page.get_by_text("many lines").first.wait_for()
    page.get_by_role("button", name="Answer", exact=True).click()
    page.get_by_role("button", name="59,600 more lines").click()
    assert page.locator(".lines:visible .line").count() < 10_000


def test_hostile_pages_are_usable(
    open_page: OpenPage, hostile: Path, check_accessibility: Check
) -> None:
    page = open_at(open_page, hostile, "overview")
    for key in ("overview", "board", find_key(hostile, "run/", "onerror")):
        go(page, key)
        page.wait_for_timeout(300)
        assert is_harmless(page)
        check_accessibility(page)
    go(page, find_key(hostile, "compare/"))
    page.get_by_role("button", name="Both fail").click()
    page.locator(".side-by-side").wait_for()
    assert is_harmless(page)


def test_many_samples_open_fast(open_page: OpenPage, large: Path) -> None:
    run = find_key(large, "run/", "large")
    page = open_page(f"{large.as_uri()}#{run}")
    rows = page.locator(".page:not([hidden]) .grid-body .grid-row")
    rows.first.wait_for()
    assert page.evaluate("performance.now()") < OPENS_WITHIN_MS * BUSY
    assert page.evaluate("document.querySelectorAll('.grid-row').length") < 100
    assert page.get_by_text("1,140 problems", exact=True).is_visible()


def test_many_samples_scroll_filter_and_sort(open_page: OpenPage, large: Path) -> None:
    run = find_key(large, "run/", "large")
    page = open_at(open_page, large, f"{run}?view=samples")
    shown = page.locator(".page:not([hidden])")
    body = shown.locator(".grid-body")
    body.locator(".grid-row").first.wait_for()
    assert shown.get_by_text("11,400 samples", exact=True).is_visible()
    body.focus()
    page.keyboard.press("End")
    body.get_by_text("BigCodeBench/1139").first.wait_for()
    assert page.evaluate("document.querySelectorAll('.grid-row').length") < 100
    shown.get_by_role("columnheader", name="CPU s").get_by_role("button").click()
    assert body.locator(".grid-row").count() > 10
    shown.get_by_role("searchbox", name="Search").fill("timeout")
    shown.get_by_text("1,710 of 11,400 samples").wait_for()
    page.keyboard.press("Tab")
    body.evaluate("element => { element.scrollTop = 0 }")
    body.get_by_text("BigCodeBench/1139").first.click()
    page.locator(".texts .line").first.wait_for()
    page.locator(".tok.keyword").first.wait_for()


def test_scrolling_draws_only_new_rows(open_page: OpenPage, large: Path) -> None:
    run = find_key(large, "run/", "large")
    page = open_at(open_page, large, f"{run}?view=samples")
    page.locator(".page:not([hidden]) .grid-body .grid-row").first.wait_for()
    changed = page.evaluate(
        """async () => {
          const body = document.querySelector('.page:not([hidden]) .grid-body');
          const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
          body.scrollTop = 3400;
          await frame();
          const rows = new Set();
          const watch = new MutationObserver((all) => all.forEach(({ target }) => {
            const element = target.nodeType === 1 ? target : target.parentElement;
            if (element && element.closest('.grid-row')) rows.add(element.closest('.grid-row'));
          }));
          const all = { subtree: true, childList: true, attributes: true, characterData: true };
          watch.observe(body, all);
          body.scrollTop += 102;
          await frame();
          await frame();
          return rows.size;
        }"""
    )
    assert 0 < changed <= 6  # three rows came into sight
    busy = page.evaluate(
        """async () => {
          const body = document.querySelector('.page:not([hidden]) .grid-body');
          const pauses = [];
          for (let step = 0; step < 60; step += 1) {
            const before = performance.now();
            body.scrollTop += 900;
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
            pauses.push(performance.now() - before);
          }
          return pauses.sort((a, b) => a - b)[30];
        }"""
    )
    assert busy < 50 * BUSY  # milliseconds, the median of 60 steps


def test_a_large_report_is_small(large: Path) -> None:
    assert large.stat().st_size < 4_000_000
