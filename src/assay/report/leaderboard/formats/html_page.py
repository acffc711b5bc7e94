"""Register ``html``: one file that needs no network, and no JavaScript to be read."""

from __future__ import annotations

from html import escape

from assay.report.leaderboard.board import Leaderboard, renderers
from assay.report.leaderboard.grid import Grid, GridCell, lay_out
from assay.report.pages.document import digest
from assay.report.text import explain_mark, label_mark
from assay.runs.marks import MARKS

STYLE = """
:root { color-scheme: light dark; --line: #d0d7de; --head: #f3f5f7; --soft: #57606a; }
:root { --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --line: #3d444d; --head: #1b2027; --soft: #9198a1; } }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8078; } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; padding: 0 1rem; }
body { max-width: 90rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .2rem; }
.protocol, .notes { color: var(--soft); font-size: .88rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .7rem; text-align: right; }
th:nth-child(2), td:nth-child(2) { text-align: left; }
td { white-space: nowrap; } td:nth-child(2) { white-space: normal; overflow-wrap: anywhere; }
thead th { background: var(--head); position: sticky; top: 0; }
thead button { all: unset; cursor: pointer; } thead button:focus-visible { outline: 2px solid; }
th[aria-sort=ascending] button::after { content: " \\25B2"; }
th[aria-sort=descending] button::after { content: " \\25BC"; }
.defect, .property { font-size: .8rem; } .defect { color: var(--bad); font-weight: 600; }
.property { color: var(--soft); }
tbody.foreign td { font-style: italic; color: var(--soft); }
"""
# Rows with a value are sorted by it, rows without one come last; models are sorted by name.
SCRIPT = """
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const first = head.dataset.first || "descending";
      const second = first === "descending" ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? second : first;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const rows = [...body.rows].map((row) => {
        const cell = row.cells[column], value = cell.dataset.value;
        return [row, value === undefined ? null : Number(value), cell.textContent];
      });
      const named = head.dataset.kind === "text";
      rows.sort(([, a, x], [, b, y]) => {
        if (named) return sign * x.localeCompare(y);
        if (a === null || b === null) return (a === null) - (b === null);
        return sign * (a - b);
      });
      body.append(...rows.map(([row]) => row));
    });
  });
}
"""


def _cell(cell: GridCell) -> str:
    value = "" if cell.value is None else f' data-value="{cell.value!r}"'
    parts = [f"<strong>{escape(cell.text)}</strong>" if cell.bold else escape(cell.text)]
    for name in cell.marks:
        kind, title = MARKS[name].kind, escape(explain_mark(name))
        parts.append(f'<span class="{kind}" title="{title}">{escape(label_mark(name))}</span>')
    return f"<td{value}>{' '.join(parts)}</td>"


def _rows(rows: tuple[tuple[GridCell, ...], ...]) -> list[str]:
    return [f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows]


def _heading(name: str) -> str:
    if name in ("model", "group"):
        return f'<th scope="col" data-kind="text" data-first="ascending">{escape(name)}</th>'
    first = ' data-first="ascending"' if name == "rank" else ""
    return f'<th scope="col"{first}>{escape(name)}</th>'


def _block(grid: Grid) -> list[str]:
    foreign = ['<tbody class="foreign">', *_rows(grid.foreign), "</tbody>"] if grid.foreign else []
    return [
        f"<h2>{escape(grid.title)}</h2>",
        f'<p class="protocol">{escape(grid.subtitle)}</p>',
        *([f'<p class="protocol">{escape(grid.shared)}</p>'] if grid.shared else []),
        '<div class="wide"><table>',
        f"<thead><tr>{''.join(map(_heading, grid.headings))}</tr></thead>",
        "<tbody>",
        *_rows(grid.rows),
        "</tbody>",
        *foreign,
        "</table></div>",
        *_notes(grid.notes),
    ]


def _notes(notes: tuple[str, ...]) -> list[str]:
    items = [f"<li>{escape(note)}</li>" for note in notes]
    return ['<ul class="notes">', *items, "</ul>"] if items else []


@renderers.register("html")
def render_html(board: Leaderboard) -> str:
    """Return a page. Its policy lets the browser load nothing and run only our own script."""
    policy = f"default-src 'none'; style-src {digest(STYLE)}; script-src {digest(SCRIPT)}"
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>Leaderboard</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        "<h1>Leaderboard</h1>",
    ]
    sheet = lay_out(board)
    for grid in sheet.grids:
        lines += _block(grid)
    lines += ["<hr>", *_notes(sheet.notes)]
    lines += [f"<script>{SCRIPT}</script>", "</body>", "</html>"]
    return "\n".join(lines) + "\n"
