"""An answer that is a call of the benchmark's function. It is executed in the sandbox.

Only expressions that build arguments are allowed: literals, operators, comprehensions, lambdas,
some builtin functions, and methods of builtin types. Arguments that are not literals are computed
in a separate process, and only data of them reach the function's process. So an answer can
neither replace the function nor give it an object that lies. A lambda, a builtin function or a
method reaches the function where that calls its parameter, as those of two problems do.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from assay.extract.answers import UNPARSABLE, AnswerKind, Decision, Execution, answer_kinds
from assay.extract.answers._places import (
    NOT_PYTHON,
    UnparsableError,
    find_answer,
    read_comparison,
    read_operand,
)
from assay.extract.rule import ExtractionTask, Found
from assay.types import Tests

SHORT = 200
NODES = (
    ast.Call, ast.keyword, ast.Starred, ast.Name, ast.Load, ast.Store, ast.Constant, ast.Tuple,
    ast.List, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp,
    ast.Subscript, ast.Slice, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    ast.comprehension, ast.Lambda, ast.arguments, ast.arg, ast.Attribute, ast.JoinedStr,
    ast.FormattedValue, ast.unaryop, ast.operator, ast.boolop, ast.cmpop,
)  # fmt: skip
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
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
    for node in ast.walk(call):
        if not isinstance(node, NODES):
            raise UnparsableError(f"{type(node).__name__} is not allowed in an argument")
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            raise UnparsableError("only names can be bound in an argument")
        if isinstance(node, ast.Attribute) and node.attr not in METHODS:
            raise UnparsableError(f"the attribute {node.attr} is not allowed in an argument")
    for name in sorted(set(_free_names(call)) - known - FUNCTIONS):
        raise UnparsableError(f"the name {name} is not allowed in an argument")
    return call


def _free_names(node: ast.AST, bound: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the names that are not bound where they are used.

    A parameter of a lambda is bound in that lambda only: elsewhere its name may be a builtin's.
    Python's own tables of symbols are not used: since 3.12 they have no scopes of comprehensions.
    """
    inner = bound
    outside: list[ast.expr] = []
    if isinstance(node, ast.Name):
        if node.id not in bound:
            yield node.id
        return
    if isinstance(node, ast.Lambda):
        arguments = node.args
        parameters = ast.iter_child_nodes(arguments)
        inner |= {one.arg for one in parameters if isinstance(one, ast.arg)}
        outside = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
    elif isinstance(node, COMPREHENSIONS):
        targets = [part for one in node.generators for part in ast.walk(one.target)]
        inner |= {one.id for one in targets if isinstance(one, ast.Name)}
        outside = [node.generators[0].iter]
    for child in _children(node):
        yield from _free_names(child, bound if child in outside else inner)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node. Those of a comprehension's generators are its own."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.comprehension | ast.arguments):
            yield from ast.iter_child_nodes(child)
        else:
            yield child


def find(text: str, task: ExtractionTask) -> Found | None:
    """Return the call in a text: one side of the assertion, if it is one."""
    function, known = _function(task.tests), _names_in(task.tests.preamble)
    return find_answer(text, lambda part: parse_call(part, function, known), _sides)


def check(answer: str, tests: Tests) -> Decision | Execution:
    """Return the program whose entry point gives the call's value, or why there is none."""
    function, known = _function(tests), _names_in(tests.preamble)
    try:
        call = parse_call(answer, function, known)
        functions = _functions(call, known, _called_parameters(tests.preamble, function))
        if all(_is_literal(node) or node in functions for node in _arguments(call)):
            return Execution(_program(tests, ast.unparse(call)))
        return _in_two_steps(call, functions, tests)
    except (*NOT_PYTHON, UnparsableError) as error:
        return Decision(False, UNPARSABLE, f"{error}: {answer[:SHORT]}")


def _in_two_steps(call: ast.Call, functions: list[ast.expr], tests: Tests) -> Execution:
    """Return a program for the arguments that are data, and one for the call with both."""
    data: list[ast.expr] = []
    later = []  # functions put back among the arguments
    for place, node in enumerate(call.args):
        if node not in functions:
            data.append(node)
        elif any(isinstance(before, ast.Starred) for before in data):
            raise UnparsableError("a function after unpacked arguments is not allowed")
        else:
            later.append(f"    positional.insert({place}, {ast.unparse(node)})\n")
    keywords = [keyword for keyword in call.keywords if keyword.value not in functions]
    later += [
        f"    named[{keyword.arg!r}] = {ast.unparse(keyword.value)}\n"
        for keyword in call.keywords
        if keyword.value in functions
    ]
    keys: list[ast.expr | None] = [ast.Constant(k.arg) if k.arg else None for k in keywords]
    named = ast.Dict(keys, [keyword.value for keyword in keywords])
    arguments = ast.unparse(ast.List([ast.List(data, ast.Load()), named], ast.Load()))
    body = f"{''.join(later)}    return {ast.unparse(call.func)}(*positional, **named)\n"
    return Execution(
        f"def {tests.entry_point}(positional, named):\n{body}", _program(tests, arguments)
    )


def _program(tests: Tests, value: str) -> str:
    return f"def {tests.entry_point}():\n    return {value}\n"


def _functions(
    call: ast.Call, known: frozenset[str], called: frozenset[str | int]
) -> list[ast.expr]:
    """Return the arguments that are functions, for parameters that the benchmark's function calls.

    They use their own names and builtin functions only.
    """
    places: list[tuple[str | int, ast.expr]] = list(enumerate(call.args))
    places += [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]
    functions = []
    for place, node in places:
        if place in called and _is_function(node):
            functions.append(node)
        elif isinstance(node, ast.Lambda):
            raise UnparsableError("the function does not call this argument, which is a lambda")
    inside = [inner for node in functions for inner in ast.walk(node)]
    if {inner.id for inner in inside if isinstance(inner, ast.Name)} & known:
        raise UnparsableError("a lambda with names of the benchmark is not allowed")
    return functions


def _is_function(node: ast.expr) -> bool:
    """Return whether this is a lambda, a builtin function, or a method of a builtin type."""
    if isinstance(node, ast.Attribute):
        return _is_literal(node.value) or _is_function(node.value)
    return isinstance(node, ast.Lambda) or (isinstance(node, ast.Name) and node.id in FUNCTIONS)


def _arguments(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the arguments as they are written, unpacked ones too."""
    yield from call.args
    for keyword in call.keywords:
        yield keyword.value if keyword.arg else ast.Starred(keyword.value, ast.Load())


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return False
    return True


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


@lru_cache(64)
def _called_parameters(code: str, function: str) -> frozenset[str | int]:
    """Return the names and places of parameters that the benchmark's function calls."""
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            calls = [inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call)]
            called = {func.id for func in calls if isinstance(func, ast.Name)}
            positional = [*node.args.posonlyargs, *node.args.args]
            places = {place for place, one in enumerate(positional) if one.arg in called}
            return frozenset({one.arg for one in positional if one.arg in called} | places)
    return frozenset()


def _sides(part: str) -> Iterator[str]:
    if sides := read_comparison(part):
        yield from sides
    elif "==" in part:
        yield part.partition("==")[0].removeprefix("assert").strip()


answer_kinds.register("call")(AnswerKind("a call of the benchmark's function", find, check))
