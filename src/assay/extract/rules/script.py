"""Find programs that read standard input: these have no entry point to look for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from assay.extract.rule import At, ExtractionTask, Found, Rule, extraction_rules
from assay.extract.rules.fences import fenced_blocks

READS = re.compile(r"\binput\(|\bstdin\b|\bopen\(0|\bos\.read\(")
FENCE = "```"


def _find(text: str, task: ExtractionTask) -> Iterator[list[Found]]:
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
    fences = [number for number, line in enumerate(lines) if FENCE in line]
    return "\n".join(lines[fences[-2] + 1 : fences[-1]]) if len(fences) > 1 else None


def _find_between(text: str, _: ExtractionTask) -> Iterator[list[Found]]:
    if code := between_last_fences(text):
        yield [Found("last-fences", code)]


extraction_rules.register("script")(
    Rule(
        "everything outside the code block that reads standard input",
        find=(At(5, _find),),
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
