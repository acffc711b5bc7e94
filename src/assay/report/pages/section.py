"""The types of a report's parts: sections of HTML, and links to them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class PageSection:
    """One page as HTML that can be read without a script.

    ``key`` is the fragment of its address. ``blocks`` are the names of the data that the script
    asks for on this page.
    """

    key: str
    title: str
    html: str
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageLink:
    """A page that exists, for navigation. ``group`` is the heading it is listed under."""

    key: str
    title: str
    group: str


def join_key(*parts: str) -> str:
    """Return a key such as ``compare/a/b``. Slashes and special characters are quoted."""
    return "/".join(quote(part, safe="", errors="replace") for part in parts)
