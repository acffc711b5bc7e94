"""Code behind a program that only shows or tries it: calls, prints, assertions, a main block."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from assay.extract.python import definition, parsed

# What stands at the left margin and is no definition, no import, no comment, no bracket's end.
ACTS = re.compile(r"^(?!def |class |async |import |from |@|#|\"\"\"|'''|[)\]}])\S", re.M)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def without_repetition(code: str, name: str) -> str:
    """With the first definition of ``name`` that does something, where there are several.

    Models that do not stop write their answer again, and the last time is often cut short.
    """
    if len(definition(name).findall(code)) < 2 or (module := parsed(code)) is None:
        return code
    all_of_them = [s for s in module.body if isinstance(s, Definition) and s.name == name]
    able = [s for s in all_of_them if not _is_stub(s)]
    others = [s for s in all_of_them if s is not able[0]] if able else []
    return _without(code, others)


def without_demo(code: str, name: str) -> str:
    """Without the statements behind the definition of ``name`` that define nothing.

    They are no part of what was asked for, and a slip in them would fail a right program.
    """
    if not ACTS.search(code) or (module := parsed(code)) is None:
        return code
    defined = [i for i, statement in enumerate(module.body) if _defines(statement, name)]
    if not defined:
        return code
    behind = module.body[defined[0] + 1 :]
    needed = {
        node.id
        for statement in module.body
        if isinstance(statement, Definition)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
    }
    return _without(code, [s for s in behind if not _is_kept(s, needed | {name})])


def _without(code: str, statements: Sequence[ast.stmt]) -> str:
    if not statements:
        return code
    lines = code.split("\n")
    for statement in reversed(statements):
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(d.lineno for d in decorators)])
        del lines[first - 1 : statement.end_lineno]
    return "\n".join(lines).rstrip() + "\n"


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
    bound = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and _is_store(n)}
    return bool(bound & needed) or not any(isinstance(n, ast.Call) for n in ast.walk(statement))


def _is_store(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _is_stub(statement: Definition) -> bool:
    """Nothing but a docstring, ``pass`` or an ellipsis."""
    return all(
        isinstance(inner, ast.Pass)
        or (isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant))
        for inner in statement.body
    )
