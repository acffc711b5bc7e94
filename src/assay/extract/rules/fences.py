"""Find Markdown code fences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from assay.extract.python import definition
from assay.extract.rule import At, ExtractionTask, Found, Rule, extraction_rules

# On its own line, or after words: "Here it is: ```python".
# No two parts of the pattern can share a run of spaces: that would take quadratic time.
OPENS = re.compile(r"^([^`~\n]*)(`{3,}|~{3,})[ \t]*(?:[\w+#.-]+[ \t\r]*|\r[ \t\r]*)?$")
FENCE = re.compile("```|~~~")
DEEPER = 4  # columns: a fence in a docstring does not end the program


@dataclass(frozen=True, slots=True)
class FencedBlock:
    """The inside of one fence, which is not closed if the text ends first."""

    code: str
    closed: bool


def fenced_blocks(text: str) -> list[FencedBlock]:
    """Return all fenced blocks in order. A fence closes with its own character and length."""
    blocks: list[FencedBlock] = []
    opened, column = "", 0
    inside: list[str] = []
    for line in text.split("\n"):
        if not opened:
            if fence := OPENS.match(line):
                before, opened = fence.groups()
                column, inside = len(before) if not before.strip() else 0, []
        elif (last := _before_the_end(line, opened, column)) is None:
            inside.append(line)
        else:
            blocks.append(
                FencedBlock(_joined([*inside, last] if last.strip() else inside), closed=True)
            )
            opened = ""
    if opened:
        blocks.append(FencedBlock(_joined(inside), closed=False))
    return blocks


def _before_the_end(line: str, opened: str, column: int) -> str | None:
    """Return what comes before the closing fence of a block, or None without one."""
    line = line.rstrip()
    if not line.endswith(opened):
        return None
    before = line.rstrip(opened[0])
    if before.strip():
        return None if opened in before else before
    return before if len(before) < column + DEEPER else None


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _find_first(text: str, task: ExtractionTask) -> Iterator[list[Found]]:
    if not _begins_before_fences(text, task):
        yield _blocks_with_name(text, task)


def _find_after_bare_code(text: str, task: ExtractionTask) -> Iterator[list[Found]]:
    if _begins_before_fences(text, task):
        yield _blocks_with_name(text, task)


def _begins_before_fences(text: str, task: ExtractionTask) -> bool:
    """Return whether a definition comes before any fence.

    Some prompts open a code block for the model, so its first fence closes that block.
    """
    return definition(task.name).search(FENCE.split(text, maxsplit=1)[0]) is not None


def _blocks_with_name(text: str, task: ExtractionTask) -> list[Found]:
    return [
        Found("fenced" if block.closed else "unclosed", block.code)
        for block in fenced_blocks(text)
        if task.name in block.code
    ]


extraction_rules.register("fenced")(
    Rule(
        "everything outside the code block that defines the entry point",
        find=(At(20, _find_first), At(40, _find_after_bare_code)),
    )
)
extraction_rules.register("unclosed")(
    Rule("the same, for a block that is cut off by the end of the text")  # found with the others
)
