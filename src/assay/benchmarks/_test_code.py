"""What a benchmark's test code is about, read off the code."""

from __future__ import annotations

import ast
import builtins

from assay.types import Integrity

BUILTINS = frozenset(dir(builtins))


def tested_function(assertions: list[str]) -> str:
    """The function that these assertions are about: the first called that is no builtin."""
    called = [name for assertion in assertions for name in _called(assertion)]
    return next((name for name in called if name not in BUILTINS), called[0])


def integrity_of(code: str, preamble: str, entry_point: str) -> Integrity:
    """Whether the tests can run apart from a program.

    They can if the program's function is all that they need of it, and they pass it no code.
    """
    module = ast.parse(f"{preamble}\n{code}")
    nodes = list(ast.walk(module))
    needed = {n.id for n in nodes if isinstance(n, ast.Name)} - _bound(nodes) - BUILTINS
    passes_code = any(isinstance(node, ast.Lambda | ast.ClassDef) for node in nodes)
    return "shared" if needed - {entry_point} or passes_code else "separated"


def _called(code: str) -> list[str]:
    """Names that are called, outermost first, from left to right."""
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
