"""Find code in a text without fences: where it starts and where prose continues."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator

from assay.extract.python import parse_code
from assay.extract.rule import At, ExtractionTask, Found, Rule, extraction_rules
from assay.extract.rules.joining import with_helpers
from assay.extract.rules.repetition import find_starts

STARTS_CODE = re.compile(r"(?:def |async def |class |import \w|from \w[\w.]* import |@\w|# )")
IMPORT = re.compile(r"(?:import \w|from \w[\w.]* import )")
# Words that start a turn or a remark. "User: thanks" even parses, as a variable's annotation.
TALK = (
    "Human", "Assistant", "User", "System", "Explanation", "Note", "Output", "Example", "Usage",
    "Question", "Answer", "Response", "Instruction", "Input", "Test", "Solution",
)  # fmt: skip
# Turns, Markdown and headings that models put after their code.
ENDS_CODE = re.compile(
    rf"(?:{'|'.join(TALK)})s?[ \t]*:(?!.*=)|\*\*|#{{2,}}[ \t]|-{{3,}}[ \t]*$|={{3,}}|<\|"
    r"|`{3}|~{3}"
)
TURN = re.compile(rf"^(?:{'|'.join(TALK)}):", re.M)


def has_turns(code: str) -> bool:
    """Return whether the code has a chat turn that parses as an annotation: ``User: thanks``."""
    if not TURN.search(code):
        return False
    module = parse_code(code)
    return module is not None and any(
        isinstance(statement, ast.AnnAssign)
        and statement.value is None
        and isinstance(statement.target, ast.Name)
        and statement.target.id in TALK
        for statement in module.body
    )


def bare_code(text: str, begins: int, task: ExtractionTask) -> list[str]:
    """Return candidates: from the first line of code to the first prose after the definition.

    If prose looks like code at first, only the imports before the definition are used. Of other
    indented blocks, only what the code needs is used: they may be examples.
    """
    blocks: list[str] = []
    before = text[:begins].split("\n")[:-1] if begins else []
    code = text[begins:]
    if (owner := _class_around(before, code)) is not None:
        code = "\n".join([*before[owner:], code])
        before = before[:owner]
    if code[0] in " \t":  # a block of Markdown by its indentation
        *blocks, last = _indented_before(before, code[: _indentation(code)])
        wanted = [last.split("\n")[:-1]]
        code = textwrap.dedent(_while_indented(code))
        before = [line.strip() for line in before]
    else:
        start = next((i for i, line in enumerate(before) if STARTS_CODE.match(line)), len(before))
        wanted = [before[start:]]
    wanted += [[line for line in before if IMPORT.match(line)], _decorators(before)]
    # What looks like prose may be in a docstring.
    candidates = [
        "".join(f"{line}\n" for line in lines).lstrip("\n") + part
        for part in (before_talk(code), code)
        for lines in wanted
    ]
    preamble = task.tests.preamble
    candidates = [with_helpers(one, [*blocks, one], task.name, preamble) for one in candidates]
    return list(dict.fromkeys(candidates))


def before_talk(code: str) -> str:
    """Return the text before the first line, except line 1, that begins a remark or a turn."""
    first, *lines = code.split("\n")
    end = next((i for i, line in enumerate(lines) if ENDS_CODE.match(line)), len(lines))
    return "\n".join([first, *lines[:end]]).rstrip() + "\n"


def _class_around(before: list[str], code: str) -> int | None:
    """Return the line of the class whose method the code is, if it is one."""
    width = _indentation(code)
    for number in reversed(range(len(before))):
        if before[number].strip() and _indentation(before[number]) < width:
            return number if before[number].lstrip().startswith("class ") else None
    return None


def _indentation(code: str) -> int:
    return len(code) - len(code.lstrip(" \t"))


def _indented_before(before: list[str], margin: str) -> list[str]:
    """Return the code blocks before a line that is indented by ``margin``, the one around it last.

    Imports may also be outside. A server may have removed the indentation of the first line.
    """
    first = margin + before[0] if before and STARTS_CODE.match(before[0]) else ""
    blocks: list[list[str]] = [[]]
    for line in [first, *before[1:]] if first else before:
        if not line.strip() or line.startswith(margin):
            blocks[-1].append(line[len(margin) :])
        else:
            blocks += [[line] if IMPORT.match(line) else [], []]
    *others, last = ("".join(f"{line}\n" for line in block) for block in blocks)
    return [*(block for block in others if block.strip()), last]


def _while_indented(code: str) -> str:
    lines = code.split("\n")
    end = next((i for i, line in enumerate(lines) if line.strip() and line[0] not in " \t"), None)
    return "\n".join(lines[:end])


def _decorators(before: list[str]) -> list[str]:
    count = 0
    while count < len(before) and before[-1 - count].startswith("@"):
        count += 1
    return before[len(before) - count :]


def _find(text: str, task: ExtractionTask) -> Iterator[list[Found]]:
    starts = find_starts(text, task)
    yield [Found("bare", code) for begins in starts for code in bare_code(text, begins, task)]


extraction_rules.register("bare")(
    Rule(
        "text around code that has no fences",
        find=(At(30, _find),),
        fix=At(40, lambda code, _: before_talk(code)),
    )
)
