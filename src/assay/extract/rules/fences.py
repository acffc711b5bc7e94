"""Find programs in Markdown code fences.

Those that read standard input have no entry point to look for.
"""

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
READS = re.compile(r"\binput\(|\bstdin\b|\bopen\(0|\bos\.read\(")
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


def _find_script(text: str, task: ExtractionTask) -> Iterator[list[Found]]:
    """Yield the last code block that reads its input, those before it, then all other blocks."""
    if task.name:
        return
    blocks = [block.code for block in reversed(fenced_blocks(text))]
    reading = [block for block in blocks if READS.search(block)]
    for block in (*reading, *(block for block in blocks if block not in reading)):
        yield [Found("script", block)]
    if task.form == "text" and not blocks:
        yield [Found("script", f"{task.prompt}{text}\n"), Found("script", text)]


def between_last_fences(text: str) -> str | None:
    """Return the lines between the last two that contain a fence, as LiveCodeBench does."""
    lines = text.split("\n")
    fences = [number for number, line in enumerate(lines) if "```" in line]
    return "\n".join(lines[fences[-2] + 1 : fences[-1]]) if len(fences) > 1 else None


def _find_between(text: str, _: ExtractionTask) -> Iterator[list[Found]]:
    if code := between_last_fences(text):
        yield [Found("last-fences", code)]


extraction_rules.register("fenced")(
    Rule(
        "everything outside the code block that defines the entry point",
        find=(At(20, _find_first), At(40, _find_after_bare_code)),
    )
)
extraction_rules.register("unclosed")(
    Rule("the same, for a block that is cut off by the end of the text")  # found with the others
)
extraction_rules.register("script")(
    Rule(
        "everything outside the code block that reads standard input",
        find=(At(5, _find_script),),
        accept=lambda code, task: task.is_program(code),
    )
)
extraction_rules.register("last-fences")(
    Rule(
        "everything outside the last two fences, as LiveCodeBench does it",
        find=(At(90, _find_between),),
        on_request=True,
    )
)
