"""Write HTML and figures in words. Everything from elsewhere passes through ``text``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from urllib.parse import quote

from assay.data.printable import CELL_LIMIT, clean_line
from assay.report.plots import axes
from assay.report.text import explain_mark, label_mark
from assay.runs.marks import MARKS, MarkName
from assay.scoring.power import POWER, detectable_difference
from assay.types import Estimate

# How many problems only one of two models passes: checkpoints of one training, other families.
DISCORDANCES = ((0.10, "checkpoints of one training"), (0.25, "models of different families"))
DASH = "\N{EN DASH}"


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


def text(value: object, limit: int = CELL_LIMIT) -> str:
    """Return a value as HTML text of one line. Control and bidi characters are visible escapes."""
    return escape(clean_line(str(value), limit))


def link(key: str, label: str, **attributes: str) -> str:
    """Return a link to a page of this document. ``label`` is text, not HTML."""
    more = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
    return f'<a href="#{escape(key)}"{more}>{text(label)}</a>'


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Return a list of names and values. Values are HTML; rows with an empty one are left out."""
    shown = [f"<div><dt>{text(name)}</dt><dd>{value}</dd></div>" for name, value in rows if value]
    return f'<dl class="facts">{"".join(shown)}</dl>' if shown else ""


def tiles(shown: Iterable[tuple[str, str, str]]) -> str:
    """Return figures, each with a name above and a note below. All are texts.

    A tile without a figure is left out.
    """
    parts = "".join(
        f'<div class="tile"><span class="what">{text(name)}</span><span class="figure">'
        f'{text(figure)}</span><span class="interval">{text(note)}</span></div>'
        for name, figure, note in shown
        if figure
    )
    return f'<div class="tiles">{parts}</div>' if parts else ""


def tag_marks(names: Iterable[MarkName]) -> str:
    """Return marks as tags: defects stand out, properties do not."""
    return " ".join(
        f'<span class="tag {MARKS[name].kind}" title="{text(explain_mark(name))}">'
        f"{text(label_mark(name))}</span>"
        for name in names
    )


def explain_tags(names: Iterable[MarkName]) -> str:
    """Return the legend of a table: the marks that occur in it, or nothing."""
    marks = set(names)
    items = "".join(
        f"<li>{tag_marks([name])} {text(explain_mark(name))}</li>"
        for name in MARKS
        if name in marks
    )
    return f'<ul class="notes" aria-label="Meaning of the marks">{items}</ul>' if items else ""


def panel(title: str, content: str, note: str = "", kind: str = "") -> str:
    """Return a titled part of a page. ``content`` is HTML, the others are text."""
    if not content:
        return ""
    below = f'<p class="note">{text(note)}</p>' if note else ""
    return f'<section class="panel {kind}"><h2>{text(title)}</h2>{content}{below}</section>'


def table(
    label: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: int = 1,
    kind: str = "",
) -> str:
    """Return a table of HTML cells. The first ``left`` columns are aligned left, others right.

    ``label`` names it for people who cannot see it.
    """

    def cells(tag: str, row: Sequence[str]) -> str:
        scope = ' scope="col"' if tag == "th" else ""
        return "".join(
            f"<{tag}{scope}{'' if number < left else ' class=num'}>{cell}</{tag}>"
            for number, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    head = cells("th", [text(one) for one in headings])
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{text(label)}">'
        f'<table class="{kind}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def percent(value: float | None) -> str:
    """Return a share as ``12.3``, in per cent, or a dash."""
    return DASH if value is None else f"{100 * value:.1f}"


def ends(estimate: Estimate) -> str:
    """Return the interval of an estimate."""
    return range_of(estimate.low, estimate.high)


def range_of(low: float, high: float) -> str:
    """Return shares as ``68.5 - 81.5`` in per cent, with a real dash."""
    return f"{100 * low:.1f}\N{THIN SPACE}{DASH}\N{THIN SPACE}{100 * high:.1f}"


def signed(value: float) -> str:
    """Return a share as points with a sign: ``+1.2``, a real minus, and no sign for zero."""
    return axes.signed(100 * value)


def day(timestamp: str) -> str:
    """Return ``17 Nov 2026, 05:43`` from ISO text, or the text itself if it is something else."""
    try:
        time = datetime.fromisoformat(timestamp)
    except ValueError:
        return timestamp[:40]
    return f"{time.day} {time:%b %Y, %H:%M}"


def count(number: int, noun: str) -> str:
    """Return ``1,140 problems`` or ``1 problem``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def could_show(problems: int) -> str:
    """Say which difference a paired comparison over so many problems shows."""
    over = f"With {count(problems, 'problem')}, a paired comparison"
    differences = [
        (smallest, kind)
        for discordance, kind in DISCORDANCES
        if problems and (smallest := detectable_difference(problems, discordance)) is not None
    ]
    if not differences:
        return f"{over} shows no difference between models: they are too few."
    power = f"({100 * POWER:g} % power)"
    if len({f"{100 * smallest:.1f}" for smallest, _ in differences}) == 1:
        return f"{over} shows differences of {100 * differences[0][0]:.1f} points and more {power}."
    parts = [f"{100 * smallest:.1f} points between {kind}" for smallest, kind in differences]
    return f"{over} shows differences from {' and from '.join(parts)} {power}."


def probability(value: float) -> str:
    """Return a p-value as people write it: ``0.031``, ``5.0 * 10^-12`` with real signs."""
    if value >= 0.0001 or value <= 0:
        return f"{value:.2g}" if value < 0.1 else f"{value:.2f}"
    digits, power = f"{value:.1e}".split("e")
    return f"{digits}\N{THIN SPACE}×\N{THIN SPACE}10{str(int(power)).translate(axes.SUPERSCRIPTS)}"
