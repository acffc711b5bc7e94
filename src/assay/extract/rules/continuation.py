"""Append a text that continues the prompt: the body of a function."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

from assay.extract.python import parsed

INDENT = "    "


def continued(prompt: str, text: str) -> Iterator[str]:
    """Yield the prompt followed by the text, as it is and with the indentation it may lack."""
    text = text.partition("\n```")[0].rstrip()  # perhaps it closes a fence that it never opened
    if not text.strip():
        return
    start = prompt if prompt.endswith("\n") or text.startswith("\n") else f"{prompt}\n"
    yield f"{prompt}{text}\n"
    # A tokenizer or a server may have removed the leading white space.
    yield f"{start}{INDENT}{text.lstrip()}\n"
    yield f"{start}{textwrap.indent(textwrap.dedent(text.lstrip(chr(10))), INDENT)}\n"


def goes_beyond(code: str, prompt: str, name: str) -> bool:
    """Return whether the function has more than the prompt, which may be valid Python itself."""
    module, begun = parsed(code), prompt.rstrip().count("\n") + 1
    if module is None or any(isinstance(statement, ast.Return) for statement in module.body):
        return False
    return any(
        isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        and statement.name == name
        and (statement.end_lineno or 0) > begun
        for statement in module.body
    )
