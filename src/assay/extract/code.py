"""What a piece of Python defines."""

from __future__ import annotations

import ast
import re
import warnings

from assay.extract.chat import TALK


def is_program(text: str, name: str) -> bool:
    """Whether the text, just as it is, is Python that defines ``name``.

    "User: thanks" parses as a variable's annotation, so such lines make it chat.
    """
    module = _parsed(text)
    return (
        module is not None
        and any(name in _bound(statement) for statement in module.body)
        and not any(_is_chat_turn(statement) for statement in module.body)
    )


def defines(code: str, name: str) -> bool:
    """Whether ``name`` is bound at the top level (or looks so, in code that does not parse)."""
    module = _parsed(code)
    if module is None:
        return re.search(rf"^(?:async )?(?:def|class) {re.escape(name)}\b", code, re.M) is not None
    return any(name in _bound(statement) for statement in module.body)


def _parsed(code: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model's odd escapes are nobody's business here
        try:
            return ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _is_chat_turn(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.AnnAssign)
        and statement.value is None
        and isinstance(statement.target, ast.Name)
        and statement.target.id in TALK
    )


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
