"""Remove code after a program that only demonstrates it: calls, prints, a main block.

The entry point needs some of the code there: definitions, imports and constants. They are found by
following names from the entry point, and from the tests. The rest is removed as a whole.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from assay.extract.python import (
    BUILTINS,
    Definition,
    definition,
    find_bound_names,
    find_unbound_names,
    is_data,
    parse_code,
    without_statements,
)
from assay.extract.reach import StatementLine, parts, reach
from assay.extract.rule import At, Cut, Rule, extraction_rules
from assay.types import Tests

# A line at the left margin that is not a definition, import, comment or closing bracket.
ACTS = re.compile(r"^(?!def |class |async |import |from |@|#|\"\"\"|'''|[)\]}])\S", re.M)
AT_MARGIN = re.compile(r"^[^\s#)\]}]", re.M)
# With these a program can use names that are not written in it.
DYNAMIC = frozenset({"eval", "exec", "globals", "locals", "setattr", "vars"})


def cut_demo(code: str, tests: Tests) -> Cut:
    """Remove the statements after the entry point that neither it nor the tests need.

    The task does not require them, and a mistake in them would fail a right program. So would words
    around it that happen to be expressions, such as ``python`` or ``[BEGIN]``.
    """
    name = tests.entry_point
    if not _may_have_demo(code, name) or (module := parse_code(code)) is None:
        return Cut(code)
    entry = next((s for s in module.body if _defines(s, name)), None)
    if entry is None or (lines := parts(code, module)) is None:
        return Cut(code)
    place = next(i for i, part in enumerate(lines) if entry in part.statements)
    program = _Program(lines[: place + 1], lines[place + 1 :], tests)
    idle = _statements(part for part in lines[:place] if all(map(_is_idle, part.statements)))
    demo = program.demo()
    if not idle and not demo:
        return Cut(code)
    cut = without_statements(code, idle + _statements(demo))
    return Cut(cut, without_statements(code, idle) if program.may_miss(demo) else None)


class _Program:
    """The parts of a program before and after its entry point, and which of them it needs."""

    def __init__(
        self, before: Sequence[StatementLine], after: Sequence[StatementLine], tests: Tests
    ) -> None:
        self._name = tests.entry_point
        self._parts = [*before, *after]
        self._place = {part: number for number, part in enumerate(after)}
        fixed = [*before, *(part for part in after if part.defines)]
        preamble = find_bound_names(tests.preamble)
        self._imported = preamble.union(*(part.binds for part in self._parts if part.imports))
        self._shown = self._find_shown(BUILTINS.union(preamble, *(part.binds for part in fixed)))
        self._needed = reach({self._name} | _names_in(tests.code), self._parts, self._provides)

    def _find_shown(self, taken: frozenset[str]) -> dict[str, int]:
        """Return the names that a demonstration uses for something else, and from where on.

        It gives a new value to what is already defined, or it works with what the entry point or
        another part of the demonstration returned.
        """
        reused: dict[str, int] = {}
        for part, number in self._place.items():
            if not part.defines:
                shows = self._name in part.calls or not (part.reads - part.binds).isdisjoint(reused)
                for name in part.gives if shows else part.binds & taken - part.alters:
                    reused.setdefault(name, number)
        return reused

    def demo(self) -> list[StatementLine]:
        """Return the parts after the entry point that it does not need."""
        return [
            part
            for part in self._place
            if not part.imports_all
            and not any(self._provides(part, name) for name in self._needed & part.gives)
        ]

    def may_miss(self, demo: Sequence[StatementLine]) -> bool:
        """Return whether the program may behave differently without its demonstration."""
        # A main block never runs: programs are modules of another name.
        live = [part for part in demo if not all(map(_is_main_block, part.statements))]
        if any(part.gives & self._needed for part in live):
            return True
        if self._needed & DYNAMIC:
            return any(part.gives for part in live)
        if any(_handed_to(part) & self._needed - self._imported for part in live):
            return True
        acting = [part for part in live if not part.defines]
        if any((part.runs | part.alters) & self._imported for part in acting):
            return True
        others = [part for part in self._parts if self._name not in part.binds]
        touched = reach((name for part in acting for name in part.reads | part.sets), others)
        return bool(touched & (self._data() | DYNAMIC))

    def _data(self) -> set[str]:
        """Return the needed names that are not functions, classes or imports."""
        values = (part.sets if part.defines else part.gives for part in self._parts)
        return set().union(*values) & self._needed - self._imported - {self._name}

    def _provides(self, part: StatementLine, name: str) -> bool:
        """Return whether this part defines the name, not a demonstration."""
        if part in self._place and not part.defines:
            return self._place[part] < self._shown.get(name, len(self._place))
        return True


def _statements(some: Iterable[StatementLine]) -> list[ast.stmt]:
    return [statement for part in some for statement in part.statements]


@lru_cache(64)
def _names_in(code: str) -> frozenset[str]:
    """Return the names that tests use and do not bind themselves."""
    return frozenset(find_unbound_names(code))


def _may_have_demo(code: str, name: str) -> bool:
    """Return whether it is worth parsing. Most answers end with the function."""
    entry = definition(name).search(code)
    return bool(ACTS.search(code) or (entry and AT_MARGIN.search(code, entry.end())))


def _defines(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, Definition):
        return statement.name == name
    return (
        isinstance(statement, ast.Assign)
        and not is_data(statement.value)
        and any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
    )


def _is_main_block(statement: ast.stmt) -> bool:
    match statement:
        case ast.If(ast.Compare(ast.Name("__name__"), [ast.Eq()], [ast.Constant("__main__")])):
            return not statement.orelse
    return False


def _handed_to(part: StatementLine) -> set[str]:
    """Return the names in decorators and bases, which receive the definition."""
    heads = [
        expression
        for s in part.statements
        if isinstance(s, Definition)
        for expression in [*s.decorator_list, *(s.bases if isinstance(s, ast.ClassDef) else ())]
    ]
    return {n.id for head in heads for n in ast.walk(head) if isinstance(n, ast.Name)}


def _is_idle(statement: ast.stmt) -> bool:
    """Return whether an expression has no effect, unless it fails."""
    return isinstance(statement, ast.Expr) and not any(
        isinstance(node, ast.Call | ast.Constant | ast.Await | ast.NamedExpr)
        for node in ast.walk(statement)
    )


extraction_rules.register("demo")(
    Rule(
        "code after the function that neither it nor the tests need",
        finish=At(30, lambda code, task, _: cut_demo(code, task.tests)),
    )
)
