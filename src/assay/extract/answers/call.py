"""An answer that is a call of the benchmark's function. It is executed in the sandbox.

Only expressions that build arguments are allowed: literals, operators, comprehensions, lambdas,
some builtin functions, and methods of builtin types. Such an answer can neither replace the
function nor return something that it did not compute.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from assay.extract.answers import UNPARSABLE, AnswerKind, Decision, answer_kinds
from assay.extract.answers._places import (
    NOT_PYTHON,
    UnparsableError,
    find_answer,
    read_comparison,
    read_operand,
)
from assay.extract.rule import Found, Task
from assay.types import Tests

SHORT = 200
NODES = (
    ast.Call, ast.keyword, ast.Starred, ast.Name, ast.Load, ast.Store, ast.Constant, ast.Tuple,
    ast.List, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp,
    ast.Subscript, ast.Slice, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    ast.comprehension, ast.Lambda, ast.arguments, ast.arg, ast.Attribute, ast.JoinedStr,
    ast.FormattedValue, ast.unaryop, ast.operator, ast.boolop, ast.cmpop,
)  # fmt: skip
_FUNCTIONS = """
abs all any ascii bin bool bytearray bytes chr complex dict divmod enumerate filter float frozenset
hex int len list map max min oct ord pow range repr reversed round set slice sorted str sum tuple
zip
"""
# None leads from a value to code: generators and functions have no attributes here.
_METHODS = """
add append bit_length capitalize casefold center clear conjugate copy count decode difference
discard encode endswith expandtabs extend find format from_bytes fromhex fromkeys get hex imag index
insert intersection isalnum isalpha isascii isdecimal isdigit isdisjoint isidentifier islower
isnumeric isprintable isspace issubset issuperset istitle isupper items join keys ljust lower lstrip
maketrans partition pop popitem real remove removeprefix removesuffix replace reverse rfind rindex
rjust rpartition rsplit rstrip setdefault sort split splitlines startswith strip swapcase
symmetric_difference title to_bytes translate union update upper values zfill
"""
FUNCTIONS, METHODS = frozenset(_FUNCTIONS.split()), frozenset(_METHODS.split())


def parse_call(answer: str, function: str, known: frozenset[str]) -> ast.Call:
    """Return the call. Raise UnparsableError unless it only builds arguments for the function.

    ``known`` are names of the benchmark's own code, which arguments may use.
    """
    call = read_operand(answer)
    if not (isinstance(call, ast.Call) and _is_name(call.func, function)):
        raise UnparsableError(f"not a call of {function}")
    nodes = list(ast.walk(call))
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    for node in nodes:
        if not isinstance(node, NODES):
            raise UnparsableError(f"{type(node).__name__} is not allowed in an argument")
        if isinstance(node, ast.Attribute) and node.attr not in METHODS:
            raise UnparsableError(f"the attribute {node.attr} is not allowed in an argument")
        if isinstance(node, ast.Name) and node.id not in bound | known | FUNCTIONS:
            raise UnparsableError(f"the name {node.id} is not allowed in an argument")
    return call


def find(text: str, task: Task) -> Found | None:
    """Return the call in a text: one side of the assertion, if it is one."""
    function = _function(task.tests)
    known = _names_in(task.tests.preamble)

    def is_call(part: str) -> bool:
        try:
            parse_call(part, function, known)
        except (UnparsableError, RecursionError):
            return False
        return True

    return find_answer(text, is_call, _sides)


def check(answer: str, tests: Tests) -> Decision | str:
    """Return the program whose entry point gives the call's value, or why there is none."""
    try:
        call = parse_call(answer, _function(tests), _names_in(tests.preamble))
        return f"def {tests.entry_point}():\n    return {ast.unparse(call)}\n"
    except (*NOT_PYTHON, UnparsableError) as error:
        return Decision(False, UNPARSABLE, f"{error}: {answer[:SHORT]}")


def _function(tests: Tests) -> str:
    assert tests.answer is not None
    return tests.answer.function


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


@lru_cache(64)
def _names_in(code: str) -> frozenset[str]:
    """Return the names that the benchmark's code defines at its top level."""
    names = set()
    for node in ast.parse(code).body:
        match node:
            case ast.FunctionDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]):
                names.add(name)
    return frozenset(names)


def _sides(part: str) -> Iterator[str]:
    if sides := read_comparison(part):
        yield from sides
    elif "==" in part:
        yield part.partition("==")[0].removeprefix("assert").strip()


answer_kinds.register("call")(AnswerKind("a call of the benchmark's function", find, check))
