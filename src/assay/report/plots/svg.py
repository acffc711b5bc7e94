"""Write elements of SVG and whole drawings as text, in colours for light and dark pages.

A plot refers to a colour as ``var(--plot-NAME,#light)``: a page may set the variables, and a plot
without a page uses the light colours. Hues are those of Okabe and Ito, which people with any kind
of colour vision can tell apart; some are darker or lighter here, so that a line has a contrast of
at least 3:1 to its background and a text of at least 4.5:1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import Literal

from assay.data.printable import clean_line

Theme = Literal["light", "dark"]
# Name: colour on a light page, colour on a dark page.
COLOURS: dict[str, tuple[str, str]] = {
    "paper": ("#ffffff", "#12161b"),
    "ink": ("#1f2328", "#e8edf2"),
    "muted": ("#59636e", "#9aa5b1"),
    "grid": ("#e6e9ed", "#272e36"),
    "axis": ("#8c959f", "#6b7580"),
    "zone": ("#eef1f4", "#1d242c"),
    "good": ("#0072b2", "#56b4e9"),
    "bad": ("#d55e00", "#f0853f"),
    "equal": ("#00805d", "#2fc59b"),
    "other": ("#6e7781", "#8d98a5"),
    "invalid": ("#a64d87", "#d78fbb"),
    "series1": ("#0072b2", "#56b4e9"),
    "series2": ("#d55e00", "#f0853f"),
    "series3": ("#00805d", "#2fc59b"),
    "series4": ("#a64d87", "#d78fbb"),
    "series5": ("#9a6a00", "#e6b02e"),
    "series6": ("#4a5560", "#c5cdd6"),
    "series7": ("#3c8fc4", "#8fd0f5"),
    "series8": ("#7a3b00", "#f5c6a0"),
    "level0": ("#eceff3", "#1d242c"),
    "level1": ("#c9dcec", "#1b3a55"),
    "level2": ("#94bfe0", "#1f5a86"),
    "level3": ("#559bcd", "#3586c0"),
    "level4": ("#1c76b5", "#6cb7e8"),
    "level5": ("#084a84", "#c3e4fa"),
}
SERIES = 8
LEVELS = 6
_REFERENCE = re.compile(r'="var\(--plot-(\w+),#[0-9a-f]{6}\)"')
FONT = "system-ui,-apple-system,'Segoe UI','Liberation Sans','DejaVu Sans',sans-serif"
SIZE, SMALL, HEADING = 12, 11, 15
LONGEST_TEXT = 300  # characters; a longer name is cut off before it is measured
HEADING_HEIGHT, SUBTITLE_HEIGHT, MARGIN = 34, 18, 16
CLASS = "assay-plot"
FIGURES = f".{CLASS}{{font-variant-numeric:tabular-nums}}"


def colour(name: str) -> str:
    """Return the value of an attribute for a colour of this palette."""
    return f"var(--plot-{name},{COLOURS[name][0]})"


def series_colour(number: int) -> str:
    """Return the colour of a series. After eight series the colours repeat; shapes do not."""
    return colour(f"series{number % SERIES + 1}")


def css_variables(theme: Theme) -> str:
    """Return the declarations of all colours, for a rule of a page's style sheet."""
    column = 0 if theme == "light" else 1
    return "".join(f"--plot-{name}:{pair[column]};" for name, pair in COLOURS.items())


def resolve(svg: str, theme: Theme) -> str:
    """Return the plot with plain colours, for programs that know no variables."""
    column = 0 if theme == "light" else 1
    return _REFERENCE.sub(lambda match: f'="{COLOURS[match[1]][column]}"', svg)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plot: its size, its name and description for people who cannot see it, its elements."""

    width: float
    height: float
    title: str
    description: str
    body: str
    subtitle: str = ""

    def embed(self) -> str:
        """Return the plot for a page, without heading, background and style sheet.

        It has no ids and no styles, so several fit on a page with a strict security policy. The
        page has ``css_variables`` in its own style sheet.
        """
        return self._root(0, 0, self.body)

    def standalone(self) -> str:
        """Return the plot as a separate file, light or dark as the reader's system is."""
        light, dark = (css_variables(theme) for theme in ("light", "dark"))
        style = (
            f"<style>{FIGURES}.{CLASS}{{{light}}}"
            f"@media (prefers-color-scheme:dark){{.{CLASS}{{{dark}}}}}</style>"
        )
        return f"{self._framed(style)}\n"

    def flatten(self, theme: Theme = "light") -> str:
        """Return the plot as a file with plain colours and without a style sheet."""
        return f"{resolve(self._framed(''), theme)}\n"

    def _framed(self, style: str) -> str:
        above = HEADING_HEIGHT + (SUBTITLE_HEIGHT if self.subtitle else 0)
        parts = [
            style,
            element(
                "rect", x=-MARGIN, y=-above - MARGIN, width=self.width + 2 * MARGIN,
                height=self.height + above + 2 * MARGIN, fill=colour("paper"),
            ),
            text(0, 4 - above + HEADING, self.title, size=HEADING, weight=600,
                 width=self.width),
        ]  # fmt: skip
        if self.subtitle:
            parts.append(
                text(0, 4 - SUBTITLE_HEIGHT, self.subtitle, fill=colour("muted"), width=self.width)
            )
        return self._root(above, MARGIN, "".join([*parts, self.body]))

    def _root(self, above: float, margin: float, content: str) -> str:
        wide, tall = self.width + 2 * margin, self.height + above + 2 * margin
        return element(
            "svg",
            element("title", escape_text(self.title)),
            element("desc", escape_text(self.description)),
            content,
            xmlns="http://www.w3.org/2000/svg", class_=CLASS, role="img",
            width=wide, height=tall,
            viewBox=f"{number(-margin)} {number(-above - margin)} {number(wide)} {number(tall)}",
            font_family=FONT, font_size=SIZE, fill=colour("ink"),
        )  # fmt: skip


def number(value: float) -> str:
    """Return a coordinate with at most two decimals."""
    shown = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if shown == "-0" else shown


def escape_text(content: str) -> str:
    """Return text from anywhere for an element or attribute, without control characters."""
    return escape(clean_line(content, LONGEST_TEXT * 10))


def element(name: str, *children: str, **attributes: str | float) -> str:
    """Return an element. Children are elements already; attributes are escaped.

    Underscores in the names of attributes stand for hyphens. A last one is dropped.
    """
    shown = ""
    for key, value in attributes.items():
        key = key if key == "viewBox" else key.rstrip("_").replace("_", "-")
        shown += f' {key}="{escape(value) if isinstance(value, str) else number(value)}"'
    content = "".join(children)
    return f"<{name}{shown}>{content}</{name}>" if content else f"<{name}{shown}/>"


def text(
    x: float, y: float, content: str, *, size: float = SIZE, anchor: str = "start",
    fill: str = "", weight: int = 400, width: float | None = None, rotate: float = 0,
    halo: bool = False,
) -> str:  # fmt: skip
    """Return a line of text. One that is wider than ``width`` is shortened in its middle.

    A halo in the colour of the page keeps it legible above lines.
    """
    content = clean_line(content, LONGEST_TEXT)
    shown = content if width is None else fit(content, width, size, weight)
    attributes: dict[str, str | float] = {"x": x, "y": y}
    if rotate:
        place = f"translate({number(x)} {number(y)}) rotate({number(rotate)})"
        attributes = {"transform": place}
    attributes |= {"font_size": size} if size != SIZE else {}
    attributes |= {"text_anchor": anchor} if anchor != "start" else {}
    attributes |= {"fill": fill} if fill else {}
    attributes |= {"font_weight": weight} if weight != 400 else {}
    if halo:
        attributes |= {
            "stroke": colour("paper"), "stroke_width": 3, "stroke_linejoin": "round",
            "paint_order": "stroke",
        }  # fmt: skip
    hint = element("title", escape(content)) if shown != content else ""
    return element("text", escape(shown), hint, **attributes)


def tooltip(content: str) -> str:
    """Return the child that browsers show when the pointer rests on an element."""
    return element("title", escape_text(content))


NARROW, WIDE = frozenset("ijlI.,:;'|!()[]{} t/frt-"), frozenset("mwMW@%—…")


def measure(content: str, size: float = SIZE, weight: int = 400) -> float:
    """Return an upper estimate of a text's width in common sans-serif fonts."""
    ems = sum(
        0.36 if c in NARROW
        else 0.92 if c in WIDE
        else 1.05 if ord(c) > 0x1100
        else 0.72 if c.isupper()
        else 0.62
        for c in content
    )  # fmt: skip
    return ems * size * (1.06 if weight > 400 else 1)


def fit(content: str, width: float, size: float = SIZE, weight: int = 400) -> str:
    """Return the text, with its middle replaced by ``…`` if it is too wide.

    Names of models and problems often differ only at the end, so both ends are kept.
    """
    if measure(content, size, weight) <= width:
        return content
    for count in range(len(content) - 1, 1, -1):
        head = (count + 1) // 2
        shown = f"{content[:head]}…{content[len(content) - (count - head) :]}"
        if measure(shown, size, weight) <= width:
            return shown
    return "…"
