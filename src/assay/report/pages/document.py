"""Render one HTML document: the sections, the script, and the data or where to get it.

Modules in ``web`` are plain ES modules. They import with ``import { a, b } from "./x.js";`` on one
line and export declarations. Each becomes a function whose result is its exports, so that names
never collide. No tool or network is needed.
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from html import escape
from importlib import resources
from typing import Any

from assay.data import codec
from assay.report.pages.markup import PageLink, PageSection, text
from assay.report.plots import css_variables

MAIN = "main.js"
# Files that are not modules: they share one scope and define a name. ``manual`` keeps Prism from
# looking through the page by itself.
PLAIN = {"vendor/prism.js": ("vendor/prism-core.js", "vendor/prism-python.js")}
BEFORE_PLAIN = "window.Prism = { manual: true };\n"
# Colours of pages in the dark; ``style.css`` has those in the light.
DARK = (
    "color-scheme: dark; --paper: #12161b; --page: #0b0e12; --raised: #12161b; --well: #1a2027; "
    "--ink: #e8edf2; --muted: #9aa5b1; --faint: #808b97; --line: #262d35; --strong-line: #46505b; "
    "--accent: #6cb7f0; --accent-soft: #15314a; --focus: #6cb7f0; --good: #6bbdf0; "
    "--good-soft: #11304a; --bad: #f4995c; --bad-soft: #43260f; --invalid: #dd9cc4; "
    "--invalid-soft: #3d2033; --equal: #46cfa6; --equal-soft: #0e3a2d; --keyword: #c9a2ea; "
    "--string: #8fce9f; --comment: #8b96a2; --literal: #f0b070; --name: #7fc3f3; --shadow: none; "
)
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w./-]+)";$', re.M)
EXPORT = re.compile(r"^export (?:async )?(?:function\*?|const|let|class) (\w+)", re.M)
COMMENT = re.compile(r"//|/\*.*\*/$")  # a line with nothing else
EXPORT_LIST = re.compile(r"export\{([^}]*)\};?\s*$")  # of minified code
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


def read_asset(name: str) -> str:
    """Return the content of a file in ``web``."""
    return (resources.files("assay.report") / "web" / name).read_text(encoding="utf-8")


@functools.cache
def bundle_script() -> str:
    """Return all modules as one script, each after those that it imports."""
    order: list[str] = []
    _visit(MAIN, order, ())
    parts = [_wrap(name, _read_module(name)) for name in order]
    return '"use strict";\nconst $modules = {};\n' + "".join(parts)


@functools.cache
def read_style() -> str:
    """Return the style sheet with the colours of pages and plots in both themes."""
    dark = DARK + css_variables("dark")
    themes = (
        f":root {{ {css_variables('light')} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {dark} }} }}\n"
        f":root[data-theme=dark] {{ {dark} }}"
    )
    return squeeze(read_asset("style.css").replace("/*dark*/", themes))


def squeeze(source: str) -> str:
    """Return the source without indentation, empty lines and lines that are comments."""
    lines = (line.strip() for line in source.splitlines())
    return "\n".join(line for line in lines if line and not COMMENT.match(line))


def digest(content: str) -> str:
    """Return the source expression that allows exactly this text in a security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _read_module(name: str) -> str:
    if name not in PLAIN:
        return read_asset(name)
    return BEFORE_PLAIN + "\n".join(map(read_asset, PLAIN[name])) + "\nexport{Prism as Prism};"


def _visit(name: str, order: list[str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"{name}: imports itself through {' and '.join(above)}")
    for _, imported in IMPORT.findall(_read_module(name)):
        if imported not in order:
            _visit(imported, order, (*above, name))
    if name not in order:
        order.append(name)


def _wrap(name: str, source: str) -> str:
    names = [(one, one) for one in EXPORT.findall(source)]
    if exports_list := EXPORT_LIST.search(source):
        pairs = (item.split(" as ") for item in exports_list[1].split(","))
        names += [(pair[-1].strip(), pair[0].strip()) for pair in pairs]
        source = source[: exports_list.start()]
    source = squeeze(
        IMPORT.sub(
            lambda m: f'const {{{m[1].replace(" as ", ": ")}}} = $modules["{m[2]}"];', source
        )
    )
    source = re.sub(r"^export (?=\w)", "", source, flags=re.M)
    exports = ", ".join(f"{outer}: {inner}" for outer, inner in names)
    return f'$modules["{name}"] = (() => {{\n{source}\nreturn {{ {exports} }};\n}})();\n'


def security_policy(*, api: bool) -> str:
    """Return the policy of a document. Only our own script and style, and no other request."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {digest(EARLY)} {digest(bundle_script())}",
            f"style-src {digest(read_style())}",
            "connect-src 'self'" if api else "connect-src 'none'",
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
        *(
            f'<section class="page" id="{escape(one.key)}" data-title="{text(one.title)}" '
            f'data-blocks="{escape(" ".join(one.blocks))}">{one.html}</section>'
            for one in sections
        ),
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


def encode(content: Any) -> bytes:
    """Return JSON that browsers read: numbers that are not finite become null.

    Python writes and reads them, and engines report them as log-probabilities.
    """
    plain = codec.to_json(content)
    try:
        encoding = json.dumps(plain, allow_nan=False, separators=(",", ":"))
    except ValueError:
        encoding = json.dumps(_finite(plain), allow_nan=False, separators=(",", ":"))
    return encoding.encode("ascii")


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
