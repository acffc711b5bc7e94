"""Find imports that the guest lacks, in a source text before any of it runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

# Most texts are never parsed, because large ones cost time and stack. Hiding an import from this
# pattern gains nothing, because the import then fails like any other error.
IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t](.*)", re.MULTILINE)
WORD = re.compile(r"[\w.]+")
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)  # raised by ast.parse


class Table:
    """The modules and names that the host's standard library has and the guest lacks."""

    def __init__(self, modules: set[str], names: dict[str, set[str]]) -> None:
        self.modules, self.names = modules, names
        dotted = {part for module in modules for part in module.split(".")}
        self._words = modules | dotted | set().union(*names.values())

    def find(self, text: str, *, trusted: bool) -> str:
        """Return the first import that the guest lacks, or nothing.

        In a program only imports at the top level count. They run whatever the program does, and
        nothing that it does at run time can change the outcome. In trusted code all imports count.
        """
        if not any(self._words.intersection(WORD.findall(line)) for line in IMPORT.findall(text)):
            return ""
        try:
            tree = ast.parse(text)
        except NOT_PYTHON:
            return ""
        nodes = _reachable(tree) if trusted else iter(tree.body)
        return next((lack for node in nodes for lack in self._lacks(node)), "")

    def has_lacking(self, module: Any, name: Any) -> bool:
        """Check whether the guest lacks a name of a module, or a module in a package."""
        return f"{module}.{name}" in self.modules or name in self.names.get(module, ())

    def has_lacking_module(self, name: Any) -> bool:
        return name in self.modules

    def _lacks(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Import(aliases):
                yield from (f"module {a.name}" for a in aliases if a.name in self.modules)
            case ast.ImportFrom(str(module), aliases, 0):
                if module in self.modules:
                    yield f"module {module}"
                names = (alias.name for alias in aliases)
                yield from (f"{module}.{name}" for name in names if self.has_lacking(module, name))


def _reachable(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements except those inside ``try``, which may have an alternative."""
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.Try):
            yield child
            yield from _reachable(child)
