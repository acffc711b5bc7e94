"""Render one HTML document: the sections, the script, and the data or where to get it."""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from assay.data import codec
from assay.report.pages.bundle import bundle_script, digest, read_asset, read_style
from assay.report.pages.markup import text
from assay.report.pages.section import PageLink, PageSection

# Code of others in the script. Their licences want to be with every copy.
LICENCES = (
    ("preact", "LICENSE-preact.txt"),
    ("htm", "LICENSE-htm.txt"),
    ("Prism", "LICENSE-prism.txt"),
)
# Runs before anything is drawn: the chosen theme, and that a script is there.
EARLY = """document.documentElement.classList.add("js");
try {
  const theme = localStorage.getItem("assay-theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch {}
"""


def security_policy(*, api: bool) -> str:
    """Return the policy of a document. Only our own script and style, and no other request."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {digest(EARLY)} {digest(bundle_script())}",
            f"style-src {digest(read_style())}",
            f"connect-src {chr(39)}self{chr(39)}" if api else "connect-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def render_document(
    sections: Iterable[PageSection],
    links: Iterable[PageLink],
    blocks: Mapping[str, Any] | None,
    *,
    title: str,
) -> str:
    """Return an HTML document of all sections.

    ``blocks`` are embedded by name. With None, the script asks a server for sections and blocks at
    ``api/section?key=`` and ``api/block?name=``, and for changes at ``api/events``.
    """
    api = blocks is None
    parts = [
        "<!DOCTYPE html>",
        f'<html lang="en" data-source="{"api" if api else "embedded"}">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(security_policy(api=api))}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{text(title)}</title>",
        f"<style>{read_style()}</style>",
        f"<script>{EARLY}</script>",
        "</head>",
        "<body>",
        '<a class="skip" href="#content">Skip to the content</a>',
        '<header class="top" id="top"><a class="brand" href="#overview">assay</a>'
        '<nav id="trail" aria-label="Breadcrumb"></nav><div id="tools"></div></header>',
        '<main id="content" tabindex="-1">',
        *map(_section, sections),
        '<section class="page" id="dynamic" hidden></section>',
        "</main>",
        '<footer class="bottom">Written by assay. This file sends no requests.</footer>'
        if not api
        else '<footer class="bottom">Served by assay.</footer>',
        _embed("links", [codec.to_json(one) for one in links]),
        _embed("licences", [[name, read_asset(f"vendor/{file}")] for name, file in LICENCES]),
    ]
    parts += [_embed(name, content) for name, content in (blocks or {}).items()]
    parts += [f'<script type="module">{bundle_script()}</script>', "</body>", "</html>"]
    return "\n".join(parts) + "\n"


def _section(section: PageSection) -> str:
    return (
        f'<section class="page" id="{escape(section.key)}" data-title="{text(section.title)}" '
        f'data-blocks="{escape(" ".join(section.blocks))}">{section.html}</section>'
    )


def encode(content: Any) -> bytes:
    """Return JSON that browsers read: numbers that are not finite become null.

    Python writes and reads them, and engines report them as log-probabilities.
    """
    plain = codec.to_json(content)
    try:
        found = json.dumps(plain, allow_nan=False, separators=(",", ":"))
    except ValueError:
        found = json.dumps(_finite(plain), allow_nan=False, separators=(",", ":"))
    return found.encode("ascii")


def _finite(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {name: _finite(one) for name, one in value.items()}
        case list() | tuple():
            return [_finite(one) for one in value]
    return value


def pack(content: Any) -> bytes:
    """Return JSON, compressed. The same content gives the same bytes."""
    return gzip.compress(encode(content), compresslevel=9, mtime=0)


def _embed(name: str, content: Any) -> str:
    data = base64.b64encode(pack(content)).decode("ascii")
    return f'<script type="application/octet-stream" data-block="{escape(name)}">{data}</script>'
