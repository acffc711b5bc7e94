"""Take the input of an interactive Python session, without its output."""

from __future__ import annotations

import re
from collections.abc import Iterator

from assay.extract.rule import At, ExtractionTask, Found, Rule, extraction_rules

PROMPT = re.compile(r"^[ \t]*(?:>>>|\.\.\.|In \[\d+\]:)(?: |$)")


def join_typed_lines(text: str) -> str:
    """Return the code after the prompts, or nothing if there are none."""
    lines = text.split("\n")
    typed = [line[match.end() :] for line in lines if (match := PROMPT.match(line))]
    return "".join(f"{line}\n" for line in typed)


def _find(text: str, _: ExtractionTask) -> Iterator[list[Found]]:
    if ">>>" in text and (typed := join_typed_lines(text)):
        yield [Found("repl", typed)]


extraction_rules.register("repl")(
    Rule(
        "prompts and output of an interactive session",
        find=(At(50, _find),),
        fix=At(20, lambda code, _: join_typed_lines(code)),
    )
)
