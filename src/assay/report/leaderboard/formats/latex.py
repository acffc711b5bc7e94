"""Register ``latex``: one booktabs table per block."""

from __future__ import annotations

from assay.report.leaderboard.board import Leaderboard, renderers
from assay.report.leaderboard.grid import PARETO, Grid, GridCell, lay_out
from assay.report.text import label_mark
from assay.runs.marks import MARKS

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}", "`": r"\textasciigrave{}", "-": "-{}",
    "[": "{[}", "]": "{]}",  # after \\ a bracket would be its optional argument
    "·": r"\textperiodcentered{}",
    PARETO: r"$\blacklozenge$",
}  # fmt: skip


def escape(text: str) -> str:
    """Return a text that LaTeX sets as it is."""
    escaped = "".join(SPECIAL.get(character, character) for character in text)
    return escaped.replace(",,", ",{},")  # a ligature


def _cell(cell: GridCell, command: str = "") -> str:
    """Return a cell. Of its marks, defects are in bold, properties in small letters."""
    text = escape(cell.text)
    name = r"\textbf" if cell.bold else command if text else ""
    parts = [f"{name}{{{text}}}" if name else text]
    for mark in cell.marks:
        style = r"\textbf{" if MARKS[mark].kind == "defect" else r"{\footnotesize "
        parts.append(f"{style}{escape(label_mark(mark))}}}")
    return " ".join(parts)


def _line(row: tuple[GridCell, ...], command: str = "") -> str:
    return f"{' & '.join(_cell(cell, command) for cell in row)} \\\\"


def _block(grid: Grid) -> list[str]:
    titles = (grid.title, grid.subtitle, grid.shared)
    aligned = "".join("l" if name == "model" else "r" for name in grid.headings)
    return [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{'. '.join(map(escape, filter(None, titles)))}}}",
        rf"\begin{{tabular}}{{{aligned}}}",
        r"\toprule",
        f"{' & '.join(map(escape, grid.headings))} \\\\",
        r"\midrule",
        *map(_line, grid.rows),
        *([r"\midrule"] if grid.foreign else []),
        *(_line(row, r"\textit") for row in grid.foreign),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par\footnotesize {escape(note)}" for note in grid.notes),
        r"\end{table}",
    ]


@renderers.register("latex")
def render_latex(board: Leaderboard) -> str:
    """Return all blocks. Scores that are not ours are in italics."""
    lines = ["% Needs \\usepackage{booktabs,textcomp,amssymb} and \\usepackage[T1]{fontenc}."]
    sheet = lay_out(board)
    for grid in sheet.grids:
        lines += ["", *_block(grid)]
    notes = " ".join(map(escape, sheet.notes))
    return "\n".join([*lines, "", rf"{{\footnotesize\noindent {notes}\par}}"]) + "\n"
