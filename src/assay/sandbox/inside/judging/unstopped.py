"""Test code that goes on after a failure, with the same calls as if there had been none."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import CodeType

from . import foresee, judge

NOTE = "__assay_note__"  # called with each error that would have ended the tests
(HANDLED,) = ast.parse(
    f"try: pass\nexcept Exception as __assay_error__: {NOTE}(__assay_error__)"
).body
# Definitions, and what has to stand where it stands.
LEFT_ALONE = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Global,
    ast.Nonlocal,
)  # fmt: skip


def compiled(code: str, name: str) -> CodeType:
    """Compile tests of ``name`` so that the first failed statement does not end them."""
    tree = ast.parse(code)
    statements, _ = foresee.inside_check(tree.body, name)
    statements[:] = _unstopped(statements)
    return compile(tree, judge.TESTS, "exec", dont_inherit=True)


def _unstopped(statements: list[ast.stmt]) -> list[ast.stmt]:
    return [_guarded(part) for statement in statements for part in _parts(statement)]


def _parts(statement: ast.stmt) -> Iterator[ast.stmt]:
    """Yield ``assert a and b`` as two: the second call must not depend on the first's result."""
    match statement:
        case ast.Assert(ast.BoolOp(ast.And(), values), message):
            for value in values:
                yield ast.copy_location(ast.Assert(value, message), statement)
        case _:
            yield statement


def _guarded(statement: ast.stmt) -> ast.stmt:
    if isinstance(statement, LEFT_ALONE):
        return statement
    # A ``try`` of the tests catches errors itself: its body stays as it is.
    if isinstance(statement, ast.For | ast.While | ast.If | ast.With):
        statement.body = _unstopped(statement.body)
    if isinstance(statement, ast.For | ast.While | ast.If):
        statement.orelse = _unstopped(statement.orelse)
    assert isinstance(HANDLED, ast.Try)
    whole = ast.Try([statement], HANDLED.handlers, [], [])
    return ast.fix_missing_locations(ast.copy_location(whole, statement))
