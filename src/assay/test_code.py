"""Analyse test code: what it tests, and whether it can run apart from a program."""

from __future__ import annotations

import ast
import builtins

from assay.types import Integrity, Tests

BUILTINS = frozenset(dir(builtins))


def code_tests(entry_point: str, code: str, prompt_code: str = "") -> Tests:
    """Return tests as code, run apart from the programs where that is possible."""
    integrity = integrity_of(code, prompt_code, entry_point)
    return Tests(entry_point, code, prompt_code, integrity, prompt_code=prompt_code)


def function_under_test(assertions: list[str]) -> str:
    """Return the function that the assertions test: the first call that is not a builtin."""
    called = [name for assertion in assertions for name in called_functions(assertion)]
    return next((name for name in called if name not in BUILTINS), called[0])


def integrity_of(code: str, preamble: str, entry_point: str) -> Integrity:
    """Return whether the tests can run apart from a program.

    They can if they need only the program's function, and only data goes in and out.
    """
    nodes = list(ast.walk(ast.parse(f"{preamble}\n{code}")))
    needed = {n.id for n in nodes if isinstance(n, ast.Name)} - _bound(nodes) - BUILTINS
    code_goes_in = any(isinstance(node, ast.Lambda | ast.ClassDef) for node in nodes)
    variables = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    code_comes_out = any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in variables
        for n in nodes
    )
    together = needed - {entry_point} or code_goes_in or code_comes_out
    return "shared" if together else "separated"


def called_functions(code: str) -> list[str]:
    """Return the names that are called, outermost first, from left to right."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    calls.sort(key=lambda call: (call.lineno, call.col_offset))
    return [call.func.id for call in calls if isinstance(call.func, ast.Name)]


def _bound(nodes: list[ast.AST]) -> set[str]:
    names = set()
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
            case ast.ExceptHandler(name=str(name)):
                names.add(name)
    return names
