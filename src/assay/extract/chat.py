"""Code in chat text that has no fences: where it starts and where talk goes on."""

from __future__ import annotations

import ast
import re
import warnings

STARTS_CODE = re.compile(r"(?:def |async def |class |import |from \w[\w.]* import |@\w)")
# Words that start a turn or a remark. "User: thanks" even parses, as a variable's annotation.
TALK = ("Human", "Assistant", "User", "System", "Explanation", "Note", "Output", "Example", "Usage")
# Turns, Markdown and headings that models put after their code.
ENDS_CODE = re.compile(rf"(?:{'|'.join(TALK)})s?[ \t]*:|\*\*|#{{2,}}[ \t]|-{{3,}}[ \t]*$|<\|")
MOST_CUTS = 20


def code_region(text: str, name: str) -> str:
    """From the first line of code to the first line of talk after ``name`` is defined."""
    lines = text.split("\n")
    start = next((i for i, line in enumerate(lines) if STARTS_CODE.match(line)), None)
    if start is None:
        return ""
    defined = re.compile(rf"(?:async )?(?:def|class) {re.escape(name)}\b")
    entry = next((i for i in range(start, len(lines)) if defined.match(lines[i])), start)
    end = next((i for i in range(entry, len(lines)) if ENDS_CODE.match(lines[i])), len(lines))
    return _without_prose_tail("\n".join(lines[start:end]).rstrip() + "\n", entry - start)


def _without_prose_tail(code: str, entry: int) -> str:
    """Cut unindented lines off the end, from the first that is no Python, but not the entry."""
    lines = code.split("\n")
    for _ in range(MOST_CUTS):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse("\n".join(lines))
        except SyntaxError as error:
            wrong = min(error.lineno or 0, len(lines)) - 1
            while wrong > entry and (not lines[wrong].strip() or lines[wrong][0] in " \t"):
                wrong -= 1
            if wrong <= entry:
                return code
            lines = lines[:wrong]
        except (ValueError, RecursionError, MemoryError):
            return code
        else:
            return "\n".join(lines).rstrip() + "\n"
    return code
