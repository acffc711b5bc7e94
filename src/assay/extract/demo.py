"""Code behind a program that only shows or tries it: calls, prints, assertions, a main block."""

from __future__ import annotations

import ast
import re

from assay.extract.python import parsed

# What stands at the left margin and is no definition, no import, no comment, no bracket's end.
ACTS = re.compile(r"^(?!def |class |async |import |from |@|#|\"\"\"|'''|[)\]}])\S", re.M)


def without_demo(code: str, name: str) -> str:
    """Without the statements at the end that define nothing.

    They are no part of what was asked for, and a slip in them would fail a right program. What
    later definitions may need stays: nothing before the last definition is touched.
    """
    if not ACTS.search(code):
        return code
    module = parsed(code)
    if module is None:
        return code
    defined = [i for i, statement in enumerate(module.body) if _defines(statement, name)]
    if not defined:
        return code
    kept = defined[-1] + 1
    if all(map(_is_kept, module.body[kept:])):
        return code
    lines = code.split("\n")
    found = lines[: module.body[kept - 1].end_lineno]
    for statement in module.body[kept:]:
        if _is_kept(statement):
            found += lines[statement.lineno - 1 : statement.end_lineno]
    return "\n".join(found) + "\n"


def _defines(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return True
    return isinstance(statement, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == name for target in statement.targets
    )


def _is_kept(statement: ast.stmt) -> bool:
    """Definitions may use what is assigned and imported behind them."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    return isinstance(statement, ast.Assign | ast.AnnAssign) and not any(
        isinstance(node, ast.Call) for node in ast.walk(statement)
    )
