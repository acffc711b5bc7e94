"""Append a text that continues the prompt: the body of a function."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator

from assay.extract.python import Definition, definition, first_line, parse_code
from assay.extract.rule import At, ExtractionTask, Found, Rule, extraction_rules
from assay.extract.rules.fences import fenced_blocks

INDENT = "    "
DEFINES = re.compile(r"^def \w", re.M)
RETURNS = re.compile(r"^return\b", re.M)


def continue_prompt(prompt: str, text: str) -> Iterator[str]:
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
    module, begun = parse_code(code), prompt.rstrip().count("\n") + 1
    if module is None or any(isinstance(statement, ast.Return) for statement in module.body):
        return False
    return any(
        isinstance(statement, Definition)
        and (statement.name == name or _has_method(statement, name, begun))
        and (statement.end_lineno or 0) > begun
        and not _only_defines(statement, begun)
        for statement in module.body
    )


def _only_defines(statement: Definition, begun: int) -> bool:
    """Return whether a function's body continues with functions alone, which nothing calls.

    They are the helpers of a program that is indented as a whole.
    """
    added = [s for s in statement.body if first_line(s) > begun]
    return (
        not isinstance(statement, ast.ClassDef)
        and any(isinstance(s, Definition) for s in added)
        and all(isinstance(s, Definition | ast.Import | ast.ImportFrom) for s in added)
    )


def _has_method(statement: Definition, name: str, begun: int) -> bool:
    """Return whether this is a class that begins in the prompt and has such a method."""
    return (
        isinstance(statement, ast.ClassDef)
        and statement.lineno <= begun
        and any(isinstance(one, ast.FunctionDef) and one.name == name for one in statement.body)
    )


def _find_first(text: str, task: ExtractionTask) -> Iterator[list[Found]]:
    if task.form == "text" and _begins_inside(text):
        yield _continue_prompt(_before_repetition(text, task), task)


def _find_in_blocks(text: str, task: ExtractionTask) -> Iterator[list[Found]]:
    for block in fenced_blocks(text):
        if _begins_inside(block.code) or RETURNS.search(block.code):
            yield _continue_prompt(block.code, task)


def _find_last(text: str, task: ExtractionTask) -> Iterator[list[Found]]:
    if task.form == "text" and not _restates(text, task) and not fenced_blocks(text):
        yield _continue_prompt(_before_repetition(text, task), task)


def _continue_prompt(body: str, task: ExtractionTask) -> list[Found]:
    return [Found("body", code) for code in continue_prompt(task.prompt, body)]


def _begins_inside(text: str) -> bool:
    """Return whether a text begins inside a function: indented, perhaps after empty lines."""
    return text.lstrip("\n")[:1] in (" ", "\t")


def _restates(text: str, task: ExtractionTask) -> bool:
    """Return whether a text begins with the function that the prompt begins."""
    begins = definition(task.name)
    return bool(begins.match(text.lstrip("\n")) and begins.search(task.prompt))


def _before_repetition(text: str, task: ExtractionTask) -> str:
    """Return the text up to where a base model begins the same function again.

    If the prompt begins another function, the text finishes that one and then has to define ours.
    """
    if DEFINES.search(task.prompt) and not definition(task.name).search(task.prompt):
        return text
    again = definition(task.name).search(text)
    return text[: again.start()] if again and text[: again.start()].strip() else text


extraction_rules.register("body")(
    Rule(
        "a function's body, appended to the prompt",
        find=(At(10, _find_first), At(60, _find_in_blocks), At(70, _find_last)),
        accept=lambda code, task: goes_beyond(code, task.prompt, task.name),
    )
)
