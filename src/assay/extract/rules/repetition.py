"""Remove repeated answers: models that do not stop write theirs again."""

from __future__ import annotations

import ast

from assay.extract.python import Definition, definition, parse_code, without_statements
from assay.extract.rule import At, Cut, Rule, extraction_rules


def without_repetition(code: str, name: str) -> str:
    """Return the code with the first definition of ``name`` that does something.

    The last one is often cut short.
    """
    if code.count(name) < 2 or len(definition(name).findall(code)) < 2:
        return code
    all_of_them = _definitions(code, name)
    first = next((s for s in all_of_them if not _is_stub(s)), None)
    if first is None:
        return code
    return without_statements(code, [s for s in all_of_them if s is not first])


def is_only_begun(code: str, name: str) -> bool:
    """Return whether ``name`` is defined, but only by stubs."""
    found = _definitions(code, name)
    return bool(found) and all(map(_is_stub, found))


def _definitions(code: str, name: str) -> list[Definition]:
    module = parse_code(code)
    body = module.body if module else []
    return [s for s in body if isinstance(s, Definition) and s.name == name]


def _is_stub(statement: Definition) -> bool:
    """Return whether a body is only a docstring, ``pass`` or an ellipsis.

    A class is one if all its methods are.
    """
    return all(
        isinstance(inner, ast.Pass)
        or (
            isinstance(statement, ast.ClassDef)
            and isinstance(inner, ast.FunctionDef)
            and _is_stub(inner)
        )
        or (isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant))
        for inner in statement.body
    )


extraction_rules.register("repeated")(
    Rule(
        "further definitions of the entry point",
        finish=At(20, lambda code, task, _: Cut(without_repetition(code, task.name))),
    )
)
