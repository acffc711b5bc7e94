"""A real browser for tests: Chromium from the system's packages, driven by playwright."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

# Where Debian, Fedora and Chrome's own packages put it.
PROGRAMS = (
    "/usr/lib/chromium/chromium-headless-shell", "chromium-headless-shell", "chromium",
    "chromium-browser", "google-chrome", "google-chrome-stable",
)  # fmt: skip
WITHIN = ("data", "blob", "about")  # addresses that leave nothing
LEAST_IMPACT = ("serious", "critical")
FIND_VIOLATIONS = """() => axe
  .run({ exclude: [['main > .page[hidden]']] }, { resultTypes: ['violations'] })
  .then((found) => found.violations)"""


def find_browser() -> str | None:
    """Return the path of an installed browser."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


@contextlib.contextmanager
def running_browser() -> Iterator[Browser]:
    """Start a browser, or skip the test with a reason that ``--require`` checks."""
    program = find_browser()
    if program is None:
        pytest.skip("needs a browser (make browser)")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the browser extra")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's own, not possible as root
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=options)
        yield browser
        browser.close()


@dataclass
class Watch:
    """Collect what a page must not do: errors on its console, failed or outgoing requests."""

    home: str  # the address that the page may load from
    problems: list[str] = field(default_factory=list)

    def attach(self, page: Page) -> None:
        """Listen to a page from its beginning."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"uncaught: {error}"))
        page.on("request", self._request)
        page.on("requestfailed", self._failure)
        page.on("response", self._response)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console {message.type}: {message.text}")

    def _request(self, request: Request) -> None:
        if not self.admits(request.url):
            self.problems.append(f"outgoing request: {request.url[:200]}")

    def _failure(self, request: Request) -> None:
        # A stream of events ends when its page is closed, and a page when another is opened.
        if request.failure != "net::ERR_ABORTED":
            self.problems.append(f"failed request: {request.url[:200]} ({request.failure})")

    def _response(self, response: Any) -> None:
        if response.status >= 400:
            self.problems.append(f"status {response.status}: {response.url[:200]}")

    def admits(self, url: str) -> bool:
        """Return whether a request stays with the page: its own file, or its own server."""
        asked, home = urlsplit(url), urlsplit(self.home)
        if asked.scheme in WITHIN:
            return True
        if home.scheme == "file":
            return asked.scheme == "file" and asked.path == home.path
        return (asked.scheme, asked.netloc) == (home.scheme, home.netloc)


def address(place: str | Path) -> str:
    """Return the address of a file, or the address itself."""
    return place.absolute().as_uri() if isinstance(place, Path) else place


def find_violations(page: Page) -> list[str]:
    """Return what axe-core finds on a page, if it is serious. Hidden pages are left out."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs the browser extra"
    )
    if page.evaluate("typeof axe === 'undefined'"):  # 650 kB, once per document
        page.evaluate(axe.Axe().axe_script)
    found = page.evaluate(FIND_VIOLATIONS)
    return [
        f"{one['id']} ({one['impact']}): {one['help']}: {one['nodes'][0]['html'][:160]}"
        for one in found
        if one["impact"] in LEAST_IMPACT
    ]
