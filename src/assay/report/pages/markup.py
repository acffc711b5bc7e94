"""Write HTML. Everything from elsewhere passes through ``text``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from assay.data.printable import CELL_LIMIT, clean_line
from assay.report.text import explain_mark, label_mark
from assay.runs.marks import MARKS, MarkName


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
    found = "".join(
        f'<div class="tile"><span class="what">{text(name)}</span><span class="figure">'
        f'{text(figure)}</span><span class="interval">{text(note)}</span></div>'
        for name, figure, note in shown
        if figure
    )
    return f'<div class="tiles">{found}</div>' if found else ""


def tag_marks(names: Iterable[MarkName]) -> str:
    """Return marks as tags: defects stand out, properties do not."""
    return " ".join(
        f'<span class="tag {MARKS[name].kind}" title="{text(explain_mark(name))}">'
        f"{text(label_mark(name))}</span>"
        for name in names
    )


def explain_tags(names: Iterable[MarkName]) -> str:
    """Return the legend of a table: the marks that occur in it, or nothing."""
    found = set(names)
    items = "".join(
        f"<li>{tag_marks([name])} {text(explain_mark(name))}</li>"
        for name in MARKS
        if name in found
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
