"""What a piece of Python defines, if it is Python at all."""

from __future__ import annotations

import ast
import re
import symtable
import warnings

NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)


def parsed(code: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model's odd escapes are nobody's business here
        try:
            return ast.parse(code)
        except NOT_PYTHON:
            return None


def wrong_line(code: str) -> int | None:
    """Where it stops being Python, from 0; None if it is Python to its end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            symtable.symtable(code, "", "exec")
        except SyntaxError as error:
            return max(0, (error.lineno or 1) - 1)
        except NOT_PYTHON:
            return 0
    return None


def defines(code: str, name: str) -> bool:
    """Whether it is Python that binds ``name`` at the top level.

    A symbol table is made in half the time of a syntax tree.
    """
    if name not in code:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = symtable.symtable(code, "", "exec").lookup(name)
        except (KeyError, *NOT_PYTHON):
            return False
    return found.is_assigned() or found.is_imported()


def definition(name: str) -> re.Pattern[str]:
    """The line, at any indentation, that begins to define ``name``."""
    return re.compile(rf"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+{re.escape(name)}\b", re.M)
