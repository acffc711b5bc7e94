"""Name the colours of plots, for light and dark pages.

A plot refers to a colour as ``var(--plot-NAME,#light)``: a page may set the variables, and a plot
without a page uses the light colours. Hues are those of Okabe and Ito, which people with any kind
of colour vision can tell apart; some are darker or lighter here, so that a line has a contrast of
at least 3:1 to its background and a text of at least 4.5:1.
"""

from __future__ import annotations

import re
from typing import Literal

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
