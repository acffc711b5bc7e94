"""Read from test code, without running it, which calls of a function it will make."""

from __future__ import annotations

import ast
from typing import Any

from .plain import encode

Call = tuple[tuple[Any, ...], dict[str, Any]]  # positional and named arguments

# Statements that run once, from left to right.
STRAIGHT = (ast.Assert, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
# Inside these a call may happen later, several times or not at all.
BENT = (
    ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    ast.NamedExpr,
)  # fmt: skip


def calls(code: str, name: str) -> list[Call]:
    """Return the arguments of all calls of ``name``, in order, or none if any is uncertain."""
    try:
        return [_arguments(node) for node in _calls(code, name)]
    except ValueError:
        return []


def has_sets(code: str, name: str) -> bool:
    """Return whether a set is among the arguments: the way it is written decides its order."""
    return any(
        isinstance(inner, ast.Set) for node in _calls(code, name) for inner in ast.walk(node)
    )


def recipes(code: str, name: str) -> list[Any]:
    """Return the arguments of the calls as encoded data, which builds sets as written."""
    return [
        [
            {"tuple": [_recipe(argument) for argument in node.args]},
            {"dict": [[keyword.arg, _recipe(keyword.value)] for keyword in node.keywords]},
        ]
        for node in _calls(code, name)
    ]


def _recipe(node: ast.expr) -> Any:
    match node:
        case ast.List(items):
            return [_recipe(item) for item in items]
        case ast.Tuple(items):
            return {"tuple": [_recipe(item) for item in items]}
        case ast.Set(items):
            # Python turns a set of three or more constants into a frozenset first.
            folded = len(items) > 2 and all(map(_is_constant, items))
            return {"folded" if folded else "set": [_recipe(item) for item in items]}
        case ast.Dict(keys, values):
            pairs = zip(keys, values, strict=True)
            return {"dict": [[_recipe(key), _recipe(value)] for key, value in pairs if key]}
    return encode(ast.literal_eval(node))


def _is_constant(node: ast.expr) -> bool:
    match node:
        case ast.Tuple(items):
            return all(map(_is_constant, items))
        case ast.UnaryOp(_, ast.Constant()) | ast.Constant():
            return True
    return False


def _calls(code: str, name: str) -> list[ast.Call]:
    statements, inner_name = inside_check(ast.parse(code).body, name)
    if inner_name != name and any(_mentions(statement, name) for statement in statements):
        return []  # it goes by both names
    name = inner_name
    found: list[ast.Call] = []
    for statement in statements:
        if not _mentions(statement, name):
            continue
        if not isinstance(statement, STRAIGHT) or any(
            isinstance(node, BENT) for node in ast.walk(statement)
        ):
            return []
        made = [
            node
            for node in ast.walk(statement)
            if isinstance(node, ast.Call) and _is_name(node.func, name)
        ]
        if len(made) != sum(_is_name(node, name) for node in ast.walk(statement)):
            return []  # the function is used for something else than a call
        if isinstance(statement, ast.Assert) and statement.msg and _mentions(statement.msg, name):
            return []
        found += sorted(made, key=_position)
    return found


def inside_check(statements: list[ast.stmt], name: str) -> tuple[list[ast.stmt], str]:
    """Return the code that runs, and the function's name, for ``def check(candidate)``."""
    *before, last = statements or [ast.Pass()]
    match last:
        case ast.Expr(ast.Call(ast.Name(checker), [ast.Name(given)], [])) if given == name:
            for statement in before:
                match statement:
                    case ast.FunctionDef(checker_name, ast.arguments(args=[argument]), body) if (
                        checker_name == checker
                    ):
                        return body, argument.arg
    return statements, name


def _arguments(call: ast.Call) -> Call:
    if any(keyword.arg is None for keyword in call.keywords):
        raise ValueError
    named = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    return tuple(ast.literal_eval(argument) for argument in call.args), named


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _mentions(node: ast.AST, name: str) -> bool:
    return any(_is_name(inner, name) for inner in ast.walk(node))


def _position(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset
