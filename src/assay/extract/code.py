"""What a piece of Python defines."""

from __future__ import annotations

import ast
import re


def parses(code: str) -> bool:
    """Whether this is Python."""
    return _parsed(code) is not None


def defines(code: str, name: str) -> bool:
    """Whether ``name`` is bound at the top level (or looks so, in code that does not parse)."""
    module = _parsed(code)
    if module is None:
        return re.search(rf"^(?:async )?(?:def|class) {re.escape(name)}\b", code, re.M) is not None
    return any(name in _bound(statement) for statement in module.body)


def _parsed(code: str) -> ast.Module | None:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name for alias in statement.names}
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
