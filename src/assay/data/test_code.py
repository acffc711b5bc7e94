"""Build tests that users and clients write: as code, as calls of a function, as texts.

Test code is analysed: what it tests, and whether it can run in a separate process.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from typing import Any

from assay.data import codec, plain, text_cases
from assay.types import Cases, Integrity, Tests

BUILTINS = frozenset(dir(builtins))
COMPARISONS = ("exact", "livecodebench", "tolerant")  # of texts
GROUP = "cases"
MOST_TOLERANCE = 1e9
# Every comparison with a tolerance of ours uses this one. A tolerance is for finite numbers: an
# infinity equals itself only, a NaN and a bool are not close to anything.
CLOSE = """\
from math import isfinite


def are_close(expected, got, tolerance):
    if isinstance(expected, bool) or isinstance(got, bool):
        return False
    try:
        return isfinite(expected) and isfinite(got) and abs(expected - got) <= tolerance
    except OverflowError:  # an integer above all floats
        return False


"""
# Values are compared as Python does. Lists and tuples are equal, because JSON has only lists.
MATCHER = f"""\
{CLOSE}def matcher():
    return lambda arguments, expected, got: same(expected, got) or (
        WRAPPED and isinstance(expected, list) and same(expected, [got])
    )


def same(expected, got):
    if isinstance(expected, (list, tuple)) and isinstance(got, (list, tuple)):
        return len(expected) == len(got) and all(map(same, expected, got))
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(same(expected[k], got[k]) for k in expected)
    if TOLERANCE and isinstance(expected, float) and isinstance(got, (int, float)):
        return expected == got or are_close(expected, got, TOLERANCE * max(1.0, abs(expected)))
    return expected == got
"""


def call_tests(
    entry_point: str,
    pairs: Sequence[tuple[Sequence[Any], Any]],
    tolerance: float = 0.0,
    *,
    preamble: str = "",
    wrapped: bool = False,
) -> Tests:
    """Return tests that call a function with arguments and compare what it returns.

    ``tolerance`` is for expected floats, relative above 1. ``wrapped``: an expected list may also
    hold the result as its only item, as in APPS. Raise ValueError if there is no such tolerance.
    """
    if not 0 <= tolerance < MOST_TOLERANCE:
        raise ValueError(f"tolerance: is not from 0 to {MOST_TOLERANCE:g}")
    inputs = {GROUP: [plain.encode(list(arguments)) for arguments, _ in pairs]}
    expected = {GROUP: [plain.encode(value) for _, value in pairs]}
    cases = Cases(inputs, expected, codec.digest([inputs, expected]))
    code = MATCHER.replace("TOLERANCE", repr(float(tolerance))).replace("WRAPPED", repr(wrapped))
    return Tests(entry_point, code, preamble, integrity="separated", cases=cases)


def script_tests(
    pairs: Sequence[tuple[str, str]], comparison: str, *, run_all: bool = True
) -> Tests:
    """Return tests of programs that read standard input: pairs of input and output."""
    texts = text_cases.pack(pairs, "stdin", comparison, run_all=run_all)
    return Tests("", "", integrity="separated", texts=texts)


def code_tests(entry_point: str, code: str, prompt_code: str = "") -> Tests:
    """Return tests as code, in a separate process from the programs where possible."""
    integrity = integrity_of(code, prompt_code, entry_point)
    return Tests(entry_point, code, prompt_code, integrity, prompt_code=prompt_code)


def function_under_test(assertions: list[str]) -> str:
    """Return the function that the assertions test: the first call that is not a builtin."""
    called = [name for assertion in assertions for name in called_functions(assertion)]
    return next((name for name in called if name not in BUILTINS), called[0])


def integrity_of(code: str, preamble: str, entry_point: str) -> Integrity:
    """Return whether the tests can run in a separate process.

    They can if they need only the program's function, and only data goes in and out. Exceptions
    that steer control flow do not come out, so tests that name one cannot.
    """
    nodes = list(ast.walk(ast.parse(f"{preamble}\n{code}")))
    names = {n.id for n in nodes if isinstance(n, ast.Name)}
    needed = names - _bound(nodes) - BUILTINS | names & plain.STEERING
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
