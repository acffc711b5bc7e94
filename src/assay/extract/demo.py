"""Code behind a program that only shows or tries it: calls, prints, assertions, a main block."""

from __future__ import annotations

import ast
import re

from assay.extract.python import Definition, parsed, without_statements

# What stands at the left margin and is no definition, no import, no comment, no bracket's end.
ACTS = re.compile(r"^(?!def |class |async |import |from |@|#|\"\"\"|'''|[)\]}])\S", re.M)


def without_demo(code: str, name: str) -> str:
    """Without the statements behind the definition of ``name`` that define nothing.

    They are no part of what was asked for, and a slip in them would fail a right program; so would
    words around it that happen to be expressions, such as ``python`` or ``[BEGIN]``.
    """
    if not ACTS.search(code) or (module := parsed(code)) is None:
        return code
    defined = [i for i, statement in enumerate(module.body) if _defines(statement, name)]
    if not defined:
        return code
    before, behind = module.body[: defined[0]], module.body[defined[0] + 1 :]
    needed = {name} | {
        node.id
        for statement in module.body
        if isinstance(statement, Definition)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
    }
    idle = [s for s in before if _is_idle(s)]
    tried = [s for s in behind if not _is_kept(s, needed)]
    return without_statements(code, idle + tried)


def _defines(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, Definition):
        return statement.name == name
    return isinstance(statement, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == name for target in statement.targets
    )


def _is_kept(statement: ast.stmt, needed: set[str]) -> bool:
    """Definitions may use what is defined, imported and assigned behind them."""
    if isinstance(statement, Definition | ast.Import | ast.ImportFrom):
        return True
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return False
    inside = list(ast.walk(statement))
    bound = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return bool(bound & needed) or not any(isinstance(n, ast.Call) for n in inside)


def _is_idle(statement: ast.stmt) -> bool:
    """An expression that could do nothing but fail."""
    return isinstance(statement, ast.Expr) and not any(
        isinstance(node, ast.Call | ast.Constant | ast.Await | ast.NamedExpr)
        for node in ast.walk(statement)
    )
