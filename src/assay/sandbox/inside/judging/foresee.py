"""Read which calls of a function test code will make, and make it go on after a failure.

Code that goes on makes the same calls as if there had been no failure. Some calls still depend on
answers because the tests say so: calls below an ``if`` or ``while``, after a failed assertion in a
``try``, and in the later parts of ``a == b == c``.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator
from itertools import islice
from types import CodeType
from typing import Any

from . import judge
from .plain import encode

Call = tuple[tuple[Any, ...], dict[str, Any]]  # positional and named arguments

# Statements that run once, from left to right.
STRAIGHT = (ast.Assert, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
# Inside these a call may happen later, several times or not at all.
BENT = (
    ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    ast.NamedExpr,
)  # fmt: skip

NOTE = "__assay_note__"  # called with each error that would have ended the tests
CHOOSE, DECIDE = "__assay_choose__", "__assay_decide__"
MOST_ITEMS = 10_000  # of a generator that all() or any() would have left
(HANDLED,) = ast.parse(
    f"try: pass\nexcept Exception as __assay_error__: {NOTE}(__assay_error__)"
).body
# Definitions, and statements that must stay in their place.
LEFT_ALONE = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Global,
    ast.Nonlocal,
)  # fmt: skip
CATCHING = (ast.Try, ast.TryStar, ast.With)
UNMOVABLE = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)  # not into a lambda
STOPS = {"all": False, "any": True}


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
    if inner_name != name and any(_mentions(statement, {name}) for statement in statements):
        return []  # it goes by both names
    name = inner_name
    nodes: list[ast.Call] = []
    for statement in statements:
        if not _mentions(statement, {name}):
            continue
        if not isinstance(statement, STRAIGHT) or any(
            isinstance(node, BENT) for node in ast.walk(statement)
        ):
            return []
        in_statement = [
            node
            for node in ast.walk(statement)
            if isinstance(node, ast.Call) and _is_name(node.func, name)
        ]
        if len(in_statement) != sum(_is_name(node, name) for node in ast.walk(statement)):
            return []  # the function is used for something else than a call
        if isinstance(statement, ast.Assert) and statement.msg and _mentions(statement.msg, {name}):
            return []
        nodes += sorted(in_statement, key=_position)
    return nodes


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


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id in names for inner in ast.walk(node))


def _position(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def compile_unstopped(code: str, name: str) -> CodeType:
    """Compile tests of ``name`` so that the first failed statement does not end them."""
    tree = ast.parse(code)
    statements, inner_name = inside_check(tree.body, name)
    inside_functions = not any(isinstance(node, CATCHING) for node in ast.walk(tree))
    statements[:] = _Unstopped(_calling(tree, {name, inner_name}), inside_functions).all(statements)
    return compile(tree, judge.TESTS, "exec", dont_inherit=True)


def choose(stop: bool, *operands: Callable[[], Any]) -> Any:
    """Return what ``or`` (stops at true) or ``and`` returns, but evaluate every operand."""
    chosen, error, stopped = None, None, False
    for operand in operands:
        try:
            value = operand()
        except Exception as raised:
            if not stopped:
                error, stopped = raised, True
            continue
        if not stopped:
            chosen, stopped = value, bool(value) is stop
    if error:
        raise error
    return chosen


def decide(stop: bool, items: Iterator[Any]) -> bool:
    """Return what ``any`` (stops at true) or ``all`` returns, but evaluate every item."""
    stopped = next((True for item in items if bool(item) is stop), False)
    with contextlib.suppress(Exception):
        for _ in islice(items, MOST_ITEMS):
            pass
    return stopped is stop


HELPERS = {CHOOSE: choose, DECIDE: decide}  # the compiled code needs these and ``NOTE``


def _calling(tree: ast.Module, names: set[str]) -> set[str]:
    """Return the names by which tests call the program: its own, and functions that use it."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    while more := {f.name for f in functions if _mentions(f, names)} - names:
        names |= more
    return names


class _Unstopped(ast.NodeTransformer):
    """Statements rewritten so that no answer decides whether the next call is made."""

    def __init__(self, names: set[str], inside_functions: bool) -> None:
        """Set up rewriting.

        ``inside_functions``: the tests catch no errors of their own functions, so their statements
        can be rewritten too.
        """
        self._names, self._inside_functions = names, inside_functions

    def all(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        return [self._guarded(part) for statement in statements for part in _parts(statement)]

    def _guarded(self, statement: ast.stmt) -> ast.stmt:
        if isinstance(statement, ast.FunctionDef) and _mentions(statement, self._names):
            if self._inside_functions:
                statement.body = self.all(statement.body)
            self.generic_visit(statement)
        if isinstance(statement, LEFT_ALONE):
            return statement
        # A ``try`` of the tests catches errors itself: its body stays as it is.
        if isinstance(statement, ast.For | ast.While | ast.If | ast.With):
            statement.body = self.all(statement.body)
        if isinstance(statement, ast.For | ast.While | ast.If):
            statement.orelse = self.all(statement.orelse)
        assert isinstance(HANDLED, ast.Try)
        whole = ast.Try([self.visit(statement)], HANDLED.handlers, [], [])
        return ast.fix_missing_locations(ast.copy_location(whole, statement))

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Drop a message that calls the program, which happens only after a wrong answer."""
        if node.msg and _mentions(node.msg, self._names):
            node.msg = None
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        later = [value for value in node.values[1:] if _mentions(value, self._names)]
        if not later or any(isinstance(inner, UNMOVABLE) for inner in ast.walk(node)):
            return node
        nothing = ast.arguments([], [], None, [], [], None, [])
        operands = [ast.Lambda(nothing, value) for value in node.values]
        stop = ast.Constant(isinstance(node.op, ast.Or))
        return ast.copy_location(_call(CHOOSE, [stop, *operands]), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Name(function), [ast.GeneratorExp() as items], []) if (
                function in STOPS and _mentions(items, self._names)
            ):
                stop = ast.Constant(STOPS[function])
                return ast.copy_location(_call(DECIDE, [stop, items]), node)
        return node


def _call(name: str, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), arguments, [])


def _parts(statement: ast.stmt) -> Iterator[ast.stmt]:
    """Yield ``assert a and b`` as two: the second call must not depend on the first result."""
    match statement:
        case ast.Assert(ast.BoolOp(ast.And(), values), message):
            for value in values:
                yield ast.copy_location(ast.Assert(value, message), statement)
        case _:
            yield statement
