"""Turn a method into the requested function."""

from __future__ import annotations

import ast

from assay.extract.python import parse_code
from assay.extract.rule import At, Rule, extraction_rules


def with_function(code: str, name: str) -> str:
    """Return the code with a function ``name`` from the last class with such a method."""
    module = parse_code(code)
    if module is None:
        return code
    for statement in reversed(module.body):
        if isinstance(statement, ast.ClassDef):
            for member in statement.body:
                if isinstance(member, ast.FunctionDef) and member.name == name:
                    static = any(map(_names_staticmethod, member.decorator_list))
                    owner = statement.name if static else f"{statement.name}()"
                    return f"{code.rstrip()}\n\n\n{name} = {owner}.{name}\n"
    return code


def _names_staticmethod(decorator: ast.expr) -> bool:
    """Return whether ``staticmethod`` occurs in a decorator, however deeply that is nested."""
    fields = (field for node in ast.walk(decorator) for _, field in ast.iter_fields(node))
    return any(isinstance(field, str) and "staticmethod" in field for field in fields)


extraction_rules.register("method")(
    Rule(
        "a method, turned into a function",
        fix=At(60, lambda code, task: with_function(code, task.name)),
    )
)
