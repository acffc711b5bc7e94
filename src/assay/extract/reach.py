"""Find the names at the top level of a program: what each statement binds and reads."""

from __future__ import annotations

import ast
import bisect
import symtable
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from assay.extract.python import ASSIGNS, Definition, first_line, flags_of, names_in, walk_top_level

Import = ast.Import | ast.ImportFrom
# At the top level. Models write fewer. The longest possible text would take half a minute.
MOST_STATEMENTS = 10_000
GLOBAL = (symtable.GLOBAL_IMPLICIT, symtable.GLOBAL_EXPLICIT)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, eq=False)
class StatementLine:
    """Statements that share a line at the top level, and the names that they use."""

    statements: tuple[ast.stmt, ...]
    binds: frozenset[str]
    alters: frozenset[str]  # changed in place, or bound again to something made of what they were
    reads: frozenset[str]  # by functions too, whenever they are called
    sets: frozenset[str]  # by functions that declare them global
    calls: frozenset[str]  # by their own name
    runs: frozenset[str]  # the beginning of statements that are nothing but a call

    @property
    def gives(self) -> frozenset[str]:
        """Return the names that have another value after it."""
        return self.binds | self.alters

    @property
    def defines(self) -> bool:
        """Return whether it contains only functions and classes."""
        return all(isinstance(s, Definition) for s in self.statements)

    @property
    def imports(self) -> bool:
        """Return whether it contains an import."""
        return any(isinstance(s, Import) for s in self.statements)

    @property
    def imports_all(self) -> bool:
        """Return whether only the other module knows which names it binds."""
        some = (s for s in self.statements if isinstance(s, ast.ImportFrom))
        return any(name.name == "*" for s in some for name in s.names)


Provides = Callable[[StatementLine, str], bool]


def reach(
    names: Iterable[str], among: Sequence[StatementLine], provides: Provides = lambda *_: True
) -> set[str]:
    """Return the names, those that their definitions read, and so on."""
    by_name: dict[str, list[StatementLine]] = {}
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


def parts(code: str, module: ast.Module) -> list[StatementLine] | None:
    """Return the parts of a program in order, or None if its names would take too long."""
    table = names_in(code)
    if table is None or len(module.body) > MOST_STATEMENTS:
        return None
    groups = list(_groups(module.body))
    starts = [first_line(group[0]) for group in groups]
    inner: list[list[symtable.SymbolTable]] = [[] for _ in groups]
    for scope in table.get_children():
        inner[max(0, bisect.bisect_right(starts, scope.get_lineno()) - 1)].append(scope)
    return [_part(group, scopes) for group, scopes in zip(groups, inner, strict=True)]


def _groups(statements: Iterable[ast.stmt]) -> Iterator[tuple[ast.stmt, ...]]:
    """Yield the statements, grouped if only a semicolon separates them."""
    group: list[ast.stmt] = []
    for statement in statements:
        if group and first_line(statement) > (group[-1].end_lineno or 0):
            yield tuple(group)
            group = []
        group.append(statement)
    if group:
        yield tuple(group)


def _part(statements: tuple[ast.stmt, ...], scopes: list[symtable.SymbolTable]) -> StatementLine:
    reads, sets = _read_scopes(scopes)
    binds: set[str] = set()
    alters: set[str] = set()
    calls: set[str] = set()
    runs: set[str] = set()
    for node in walk_top_level(statements):
        match node:
            case ast.Name(name, context):
                (reads if isinstance(context, ast.Load) else binds).add(name)
            case ast.Call(ast.Name(name)):
                calls.add(name)
            case ast.Expr(ast.Call() as call):
                runs.update(_root(call))
            case ast.Attribute() | ast.Subscript() | ast.Assign() | ast.AugAssign():
                alters.update(_altered(node))
            case ast.stmt() | ast.ExceptHandler() | ast.pattern():
                binds.update(_names_bound(node))
    return StatementLine(statements, *map(frozenset, (binds, alters, reads, sets, calls, runs)))


def _read_scopes(scopes: list[symtable.SymbolTable]) -> tuple[set[str], set[str]]:
    """Return the global names that functions and classes read, and those that they bind."""
    reads: set[str] = set()
    sets: set[str] = set()
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        is_class = scope.get_type() == "class"  # it reads a global name until it binds its own
        for name, flags in flags_of(scope):
            where = flags >> symtable.SCOPE_OFF & symtable.SCOPE_MASK  # type: ignore[attr-defined]
            if flags & symtable.USE and (is_class or where in GLOBAL):  # type: ignore[attr-defined]
                reads.add(name)
            if flags & ASSIGNS and where in GLOBAL:
                sets.add(name)
    return reads, sets


def _names_bound(node: ast.AST) -> list[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Import() | ast.ImportFrom():
            return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
        case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
            return [node.name] if node.name else []
        case ast.MatchMapping():
            return [node.rest] if node.rest else []
    return []


def _altered(node: ast.AST) -> Iterable[str]:
    match node:
        case ast.Attribute() | ast.Subscript():
            return () if isinstance(node.ctx, ast.Load) else _root(node)
        case ast.AugAssign():
            return _root(node.target)
        case ast.Assign():
            inside = list(ast.walk(node.value))
            called = {id(call.func) for call in inside if isinstance(call, ast.Call)}
            used = {n.id for n in inside if isinstance(n, ast.Name) and id(n) not in called}
            return used & {target.id for target in node.targets if isinstance(target, ast.Name)}
    return ()


def _root(node: ast.expr) -> list[str]:
    """Return the name that an expression of attributes, items and calls begins with."""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Attribute() | ast.Subscript():
                node = node.value
            case ast.Call():
                node = node.func
            case _:
                return []
    return [node.id]
