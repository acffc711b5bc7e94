"""Register ``latex``: one booktabs table per block."""

from __future__ import annotations

from assay.report.leaderboard.board import Leaderboard
from assay.report.leaderboard.grid import (
    INCOMPLETE,
    NOT_PUBLISHABLE,
    PARETO,
    Grid,
    GridCell,
    lay_out,
)
from assay.report.leaderboard.rendering import renderers

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}", "`": r"\textasciigrave{}", "-": "-{}",
    "[": "{[}", "]": "{]}",  # after \\ a bracket would be its optional argument
    "·": r"\textperiodcentered{}",
    NOT_PUBLISHABLE: r"\textsuperscript{\textdagger}",
    INCOMPLETE: r"\textsuperscript{\textdaggerdbl}", PARETO: r"$\blacklozenge$",
}  # fmt: skip


def escape(text: str) -> str:
    """Return a text that LaTeX sets as it is."""
    escaped = "".join(SPECIAL.get(character, character) for character in text)
    return escaped.replace(",,", ",{},")  # a ligature


def _cell(cell: GridCell, command: str = "") -> str:
    text = escape(cell.text)
    name = r"\textbf" if cell.bold else command if text else ""
    return f"{name}{{{text}}}" if name else text


def _line(row: tuple[GridCell, ...], command: str = "") -> str:
    return f"{' & '.join(_cell(cell, command) for cell in row)} \\\\"


def _block(grid: Grid) -> list[str]:
    aligned = "".join("l" if name == "model" else "r" for name in grid.headings)
    return [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(grid.title)}. {escape(grid.subtitle)}}}",
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
