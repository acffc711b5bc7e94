"""Plots as a real browser shows them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from assay.report.plots import Bar, css_variables, draw_bars
from assay.report.plots.svg import COLOURS
from tests.browser.conftest import OpenPage
from tests.report.plot_examples import EXAMPLES

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
# Texts whose boxes intersect, by more than a pixel in both directions.
OVERLAPS = """() => {
  const texts = [...document.querySelectorAll('svg text')]
    .map(t => [t.textContent, t.getBoundingClientRect()]);
  const found = [];
  for (let i = 0; i < texts.length; i++)
    for (let j = i + 1; j < texts.length; j++) {
      const [a, b] = [texts[i][1], texts[j][1]];
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
          Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)
        found.push(texts[i][0] + ' | ' + texts[j][0]);
    }
  return found;
}"""
OUTSIDE = """() => {
  const plot = document.querySelector('svg').getBoundingClientRect();
  return [...document.querySelectorAll('svg text')].filter(t => {
    const box = t.getBoundingClientRect();
    return box.left < plot.left - 1 || box.right > plot.right + 1 ||
           box.top < plot.top - 2 || box.bottom > plot.bottom + 2;
  }).map(t => t.textContent);
}"""


def page_of(content: str) -> str:
    light, dark = css_variables("light"), css_variables("dark")
    style = f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>plot</title>'
        f"<style>body{{margin:20px;background:var(--plot-paper)}}{style}</style>"
        f"<main><h1>Plot</h1>{content}</main></html>"
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_texts_do_not_overlap_and_lie_inside(
    name: str, open_page: OpenPage, tmp_path: Path, check_accessibility: Callable[[Page], None]
) -> None:
    path = tmp_path / "plot.html"
    path.write_text(page_of(EXAMPLES[name].embed()))
    page = open_page(path)
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate(OUTSIDE) == []
    check_accessibility(page)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_file_follows_the_readers_colour_scheme(
    dark: bool, open_page: OpenPage, tmp_path: Path
) -> None:
    path = tmp_path / "plot.svg"
    path.write_text(EXAMPLES["forest"].standalone())
    page = open_page(path, dark=dark)
    paper = page.evaluate("getComputedStyle(document.querySelector('rect')).fill")
    red, green, blue = (int(COLOURS["paper"][dark][at : at + 2], 16) for at in (1, 3, 5))
    assert paper == f"rgb({red}, {green}, {blue})"


def test_a_hostile_name_runs_nothing(open_page: OpenPage, tmp_path: Path) -> None:
    name = "</title></text></svg><img src=x onerror=alert(1)><script>alert(2)</script>"
    path = tmp_path / "plot.html"
    path.write_text(page_of(draw_bars(name, (Bar(name, 1),)).embed()))
    page = open_page(path)
    assert page.locator("img, script").count() == 0
    assert page.locator("svg").count() == 1
