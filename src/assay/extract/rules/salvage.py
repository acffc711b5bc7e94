"""Keep the longest valid part of code that stops being Python."""

from __future__ import annotations

from assay.extract.python import definition, wrong_line
from assay.extract.rule import At, Effort, Rule, extraction_rules
from assay.extract.rules.repetition import is_only_begun

MOST_CUTS = 24


def valid_prefix(code: str, name: str, effort: Effort) -> str:
    """Return the code before the first wrong line, but with the definition of ``name``.

    Whole statements at the left margin are removed first; lines of the definition itself only if
    the error is there. Nothing is left of code that cannot be fixed this way, or of which only a
    docstring would remain.
    """
    entry = definition(name).search(code)
    if entry is None:
        return ""
    first = code.count("\n", 0, entry.start())
    lines = code.split("\n")
    for _ in range(MOST_CUTS):
        prefix = "\n".join(lines).rstrip() + "\n"
        if not effort.spend(prefix):
            return ""
        wrong = wrong_line(prefix)
        if wrong is None:
            return "" if is_only_begun(prefix, name) else prefix
        cut = wrong = min(wrong, len(lines) - 1)
        while cut > first and not _at_margin(lines[cut]):
            cut -= 1
        cut = cut if cut > first else wrong
        if cut <= first:
            return ""
        lines = lines[:cut]
    return ""


def ends_inside(code: str, prefix: str) -> bool:
    """Return whether a prefix ends inside a statement: what follows it is indented."""
    prefix = prefix.rstrip()
    rest = code[len(prefix) :].split("\n")[1:] if code.startswith(prefix) else []
    return next((not _at_margin(line) for line in rest if line.strip()), False)


def _at_margin(line: str) -> bool:
    return bool(line.strip()) and line[0] not in " \t)]}"


extraction_rules.register("salvaged")(
    Rule(
        "everything after the longest part that is valid Python",
        fix=At(50, lambda code, task: valid_prefix(code, task.name, task.effort)),
    )
)
