"""Put a model's text into the gap between a prefix and a suffix.

Nothing is cut off or added if the result is Python. Otherwise white space that a tokenizer or a
server may have removed is put back: the indentation of the first line, the end of the last one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from assay.extract.python import LONGEST_TREE, NOT_PYTHON
from assay.extract.rule import At, ExtractionTask, Found, Rule, extraction_rules
from assay.formats.marks import middle_of

NAME = "infill"
INDENTATION = re.compile(r"[ \t]*")
STEP = "    "


def fill_in(prefix: str, middle: str, suffix: str) -> Found:
    """Return the program with its gap filled, and which white space was put back."""
    plain = Found(NAME, f"{prefix}{middle}{suffix}")
    if len(plain.code) > LONGEST_TREE or _compiles(plain.code):
        return plain
    for changes, text in _with_white_space(prefix, middle, suffix):
        code = f"{prefix}{text}{suffix}"
        if _compiles(code):
            return Found("+".join((NAME, *changes)), code)
    return plain


def _compiles(code: str) -> bool:
    """Return whether it is Python, without a ``return`` that has lost its function."""
    try:
        compile(code, "<program>", "exec", dont_inherit=True)
    except NOT_PYTHON:
        return False
    return True


def _with_white_space(prefix: str, middle: str, suffix: str) -> Iterator[tuple[list[str], str]]:
    """Yield the text with white space that it may lack, if the gap begins with a line."""
    if not middle.strip() or not prefix.endswith("\n"):
        return
    ended = f"{middle.rstrip()}\n"
    lacks_end = bool(suffix) and not middle.rstrip(" \t").endswith("\n")
    if lacks_end:
        yield ["line-end"], ended
    # Decoders of SentencePiece drop one blank, some servers drop all.
    for indented in (f" {middle}", _next_indentation(prefix) + middle.lstrip()):
        yield ["indentation"], indented
        if lacks_end:
            yield ["indentation", "line-end"], f"{indented.rstrip()}\n"


def _next_indentation(prefix: str) -> str:
    """Return the indentation that a statement after the prefix has in its block."""
    lines = [line for line in prefix.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    indentation = INDENTATION.match(last)
    deeper = last.rstrip().endswith(":")
    return (indentation[0] if indentation else "") + (STEP if deeper else "")


def _find(text: str, task: ExtractionTask) -> Iterator[list[Found]]:
    prefix, suffix = task.prompt, task.suffix or ""
    yield [fill_in(prefix, middle_of(text, prefix, suffix), suffix)]


extraction_rules.register(NAME)(
    Rule(
        "a part of a program, put between the code before and after it",
        find=(At(95, _find),),
        on_request=True,
    )
)
