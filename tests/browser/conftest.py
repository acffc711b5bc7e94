"""A browser per package, and pages that fail the test on an error or an outgoing request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.chromium import Watch, address, find_violations, running_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

OpenPage = Callable[..., "Page"]
SIZE = {"width": 1280, "height": 900}


@pytest.fixture(scope="package")
def browser(_environment: None) -> Iterator[Browser]:
    """Start the browser once. It ends with the package, since its event loop disturbs others'."""
    with running_browser() as found:
        yield found


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Return a function that opens a file or an address in a fresh profile.

    ``dark`` is the reader's colour scheme; other options are those of ``Browser.new_context``, such
    as ``java_script_enabled=False``. ``allowed`` are texts of problems that the test expects.
    """
    watches: list[tuple[Watch, tuple[str, ...]]] = []
    contexts = []

    def open_one(
        place: str | Path, *, dark: bool = False, allowed: tuple[str, ...] = (), **options: Any
    ) -> Page:
        options.setdefault("viewport", SIZE)
        context = browser.new_context(color_scheme="dark" if dark else "light", **options)
        contexts.append(context)
        watch = Watch(address(place))
        watches.append((watch, allowed))
        page = context.new_page()
        watch.attach(page)
        page.goto(address(place))
        return page

    yield open_one
    for context in contexts:
        context.close()
    found = [
        problem
        for watch, allowed in watches
        for problem in watch.problems
        if not any(text in problem for text in allowed)
    ]
    assert found == []


@pytest.fixture
def check_accessibility() -> Callable[[Page], None]:
    """Return a function that fails if axe-core finds something serious on a page."""

    def check(page: Page) -> None:
        assert find_violations(page) == []

    return check


@pytest.fixture
def take_picture(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Page, str], Path]:
    """Return a function that takes a screenshot of what is visible.

    With ``--screenshots FOLDER`` it is kept there; `make screenshots` uses docs/images.
    """
    folder = Path(request.config.getoption("--screenshots") or tmp_path)

    def take(page: Page, name: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.png"
        page.screenshot(path=str(path), animations="disabled")
        return path

    return take
