"""Find what a piece of Python defines, if it is Python at all."""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Iterable
from functools import lru_cache

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
ASSIGNS = symtable.DEF_LOCAL | symtable.DEF_IMPORT  # type: ignore[attr-defined]
BINDS = ASSIGNS | symtable.DEF_PARAM  # type: ignore[attr-defined]
LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|$)")  # as Python's own numbers of lines have it
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)


# Rules look at the same few readings of a text again and again, and parsing is what takes time.
REMEMBERED = 4


@lru_cache(REMEMBERED)
def parse_code(code: str) -> ast.Module | None:
    """Return the syntax tree, which must not be changed."""
    try:
        return ast.parse(code)
    except NOT_PYTHON:
        return None


@lru_cache(REMEMBERED)
def _names(code: str) -> symtable.SymbolTable | int:
    """Return the names, in half the time of a syntax tree, or the line where Python ends."""
    try:
        return symtable.symtable(code, "", "exec")
    except SyntaxError as error:
        return max(0, (error.lineno or 1) - 1)
    except NOT_PYTHON:
        return 0


def forget() -> None:
    """Free the cached parse results. Those of a long text take hundreds of megabytes."""
    parse_code.cache_clear()
    _names.cache_clear()


def wrong_line(code: str) -> int | None:
    """Return the line, from 0, where it stops being Python, or None if all of it is Python."""
    names = _names(code)
    return names if isinstance(names, int) else None


def names_in(code: str) -> symtable.SymbolTable | None:
    """Return the names of all its scopes, or None if it is not Python."""
    names = _names(code)
    return None if isinstance(names, int) else names


def find_bound_names(code: str) -> set[str]:
    """Return the names that the top level binds, or none if it is not Python."""
    names = _names(code)
    if isinstance(names, int):
        return set()
    return {name for name, flags in flags_of(names) if flags & ASSIGNS}


def defines(code: str, name: str) -> bool:
    """Return whether it is Python that binds ``name`` at the top level."""
    return name in code and name in find_bound_names(code)


def acts(code: str) -> bool:
    """Return whether it is Python that calls something."""
    module = parse_code(code)
    return module is not None and any(isinstance(node, ast.Call) for node in ast.walk(module))


def find_unbound_names(code: str) -> set[str]:
    """Return names that some scope uses and none binds, or none if it is not Python."""
    names = _names(code)
    if isinstance(names, int):
        return set()
    tables = [names]
    binds: set[str] = set()
    used: set[str] = set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for name, flags in flags_of(table):
            used.add(name)
            if flags & BINDS:
                binds.add(name)
    return used - binds


def flags_of(table: symtable.SymbolTable) -> Iterable[tuple[str, int]]:
    """Return the names of one scope and what the scope does with each.

    ``get_symbols`` looks through all inner scopes for each name, which takes quadratic time.
    """
    symbols: dict[str, int] = table._table.symbols  # type: ignore[attr-defined]
    return symbols.items()


def first_line(statement: ast.stmt) -> int:
    """Return the line where a statement begins, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def without_statements(code: str, statements: Iterable[ast.stmt]) -> str:
    """Return the lines of the code without those of these statements at its top level."""
    gone: set[int] = set()
    for statement in statements:
        first = first_line(statement)
        gone.update(range(first, (statement.end_lineno or first) + 1))
    if not gone:
        return code
    lines = enumerate(LINE.findall(code), 1)
    return "".join(line for number, line in lines if number not in gone).rstrip() + "\n"


def definition(name: str) -> re.Pattern[str]:
    """Return the line, at any indentation, that begins to define ``name``."""
    s = r"[^\S\n]"  # a page may have other spaces
    return re.compile(rf"^{s}*(?:async{s}+)?(?:def|class){s}+{re.escape(name)}\b", re.M)
