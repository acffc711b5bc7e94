"""Names at the top level of a program: what each statement binds and reads, what leads where."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from assay.extract.python import ASSIGNS, LINE, NOT_PYTHON, Definition, first_line, flags_of

Import = ast.Import | ast.ImportFrom
GLOBAL = (symtable.GLOBAL_IMPLICIT, symtable.GLOBAL_EXPLICIT)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Statements that share a line at the top level, and the names that they are about."""

    statements: tuple[ast.stmt, ...]
    binds: frozenset[str]
    alters: frozenset[str]  # changed in place, or bound again to something made of what they were
    reads: frozenset[str]  # by functions too, whenever they are called
    sets: frozenset[str]  # by functions that declare them global
    calls: frozenset[str]  # anywhere, by their own name
    runs: frozenset[str]  # the beginning of statements that are nothing but a call

    @property
    def gives(self) -> frozenset[str]:
        """Return the names that are something else after it."""
        return self.binds | self.alters

    @property
    def defines(self) -> bool:
        """Whether it holds functions and classes alone."""
        return all(isinstance(s, Definition) for s in self.statements)

    @property
    def imports(self) -> bool:
        return any(isinstance(s, Import) for s in self.statements)

    @property
    def imports_all(self) -> bool:
        """Whether only the other module knows which names it binds."""
        some = (s for s in self.statements if isinstance(s, ast.ImportFrom))
        return any(name.name == "*" for s in some for name in s.names)


Provides = Callable[[Part, str], bool]


def gives(part: Part, name: str) -> bool:
    return name in part.gives


def parts(code: str, module: ast.Module) -> list[Part] | None:
    """Return the parts of a program in order, or None if its names cannot be told."""
    lines = LINE.findall(code)
    try:
        return [_part(lines, statements) for statements in _groups(module.body)]
    except NOT_PYTHON:
        return None


def reach(names: Iterable[str], among: Sequence[Part], provides: Provides = gives) -> set[str]:
    """Return the names, those that are read by what provides them, and so on."""
    by_name: dict[str, list[Part]] = {}
    for part in among:
        for name in part.gives:
            by_name.setdefault(name, []).append(part)
    reached: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            for part in by_name.get(name, ()):
                if provides(part, name):
                    waiting += part.reads | part.sets
    return reached


def _groups(statements: Iterable[ast.stmt]) -> Iterator[tuple[ast.stmt, ...]]:
    """Yield the statements, those together that only a semicolon divides."""
    group: list[ast.stmt] = []
    for statement in statements:
        if group and first_line(statement) > (group[-1].end_lineno or 0):
            yield tuple(group)
            group = []
        group.append(statement)
    if group:
        yield tuple(group)


def _part(lines: Sequence[str], statements: tuple[ast.stmt, ...]) -> Part:
    source = "".join(lines[first_line(statements[0]) - 1 : statements[-1].end_lineno])
    table = symtable.symtable(source, "", "exec")
    binds = frozenset(name for name, flags in flags_of(table) if flags & ASSIGNS)
    reads, sets = _globals(table)
    acting = [s for s in statements if not isinstance(s, Definition)]
    alters: set[str] = set()
    calls: set[str] = set()
    runs: set[str] = set()
    for node in (node for statement in acting for node in ast.walk(statement)):
        alters |= _altered(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            calls.add(node.func.id)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            runs |= _root(node.value)
    names = map(frozenset, (binds, alters, reads, sets, calls, runs))
    return Part(statements, *names)


def _globals(table: symtable.SymbolTable) -> tuple[frozenset[str], frozenset[str]]:
    """Return the global names that any scope reads, and those that an inner one binds."""
    reads: set[str] = set()
    sets: set[str] = set()
    tables = [table]
    while tables:
        scope = tables.pop()
        tables += scope.get_children()
        open_ = scope.get_type() in ("module", "class")  # what such a scope binds may be missing
        for name, flags in flags_of(scope):
            where = flags >> symtable.SCOPE_OFF & symtable.SCOPE_MASK  # type: ignore[attr-defined]
            if flags & symtable.USE and (open_ or where in GLOBAL):  # type: ignore[attr-defined]
                reads.add(name)
            if scope is not table and where in GLOBAL and flags & ASSIGNS:
                sets.add(name)
    return frozenset(reads), frozenset(sets)


def _altered(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Attribute | ast.Subscript):
        return _root(node) if not isinstance(node.ctx, ast.Load) else set()
    if isinstance(node, ast.AugAssign):
        return _root(node.target)
    if isinstance(node, ast.Assign):
        inside = list(ast.walk(node.value))
        called = {id(call.func) for call in inside if isinstance(call, ast.Call)}
        used = {n.id for n in inside if isinstance(n, ast.Name) and id(n) not in called}
        return used & {t.id for t in node.targets if isinstance(t, ast.Name)}
    return set()


def _root(node: ast.expr) -> set[str]:
    """Return the name that an expression of attributes, items and calls begins with."""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Attribute() | ast.Subscript() | ast.Starred():
                node = node.value
            case ast.Call():
                node = node.func
            case _:
                return set()
    return {node.id}
