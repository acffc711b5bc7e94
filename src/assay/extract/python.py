"""What a piece of Python defines, if it is Python at all."""

from __future__ import annotations

import ast
import re
import symtable
import warnings
from collections.abc import Sequence

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)


def parsed(code: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model's odd escapes are nobody's business here
        try:
            return ast.parse(code)
        except NOT_PYTHON:
            return None


def symbols(code: str) -> symtable.SymbolTable:
    """In half the time of a syntax tree; raises one of ``NOT_PYTHON`` if it is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return symtable.symtable(code, "", "exec")


def wrong_line(code: str) -> int | None:
    """Where it stops being Python, from 0; None if it is Python to its end."""
    try:
        symbols(code)
    except SyntaxError as error:
        return max(0, (error.lineno or 1) - 1)
    except NOT_PYTHON:
        return 0
    return None


def defines(code: str, name: str) -> bool:
    """Whether it is Python that binds ``name`` at the top level."""
    if name not in code:
        return False
    try:
        found = symbols(code).lookup(name)
    except (KeyError, *NOT_PYTHON):
        return False
    return found.is_assigned() or found.is_imported()


def without_statements(code: str, statements: Sequence[ast.stmt]) -> str:
    """The lines of the code but for those of these statements at its top level."""
    if not statements:
        return code
    lines = code.split("\n")
    for statement in reversed(statements):
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
        del lines[first - 1 : statement.end_lineno]
    return "\n".join(lines).rstrip() + "\n"


def definition(name: str) -> re.Pattern[str]:
    """The line, at any indentation, that begins to define ``name``."""
    return re.compile(rf"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+{re.escape(name)}\b", re.M)
