"""Read tests from a row of a dataset: a benchmark's task, or tests of the dataset's own."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.data import codec
from assay.data.arguments import show
from assay.data.reading import parse_json
from assay.data.test_code import (
    COMPARISONS,
    call_tests,
    code_tests,
    function_under_test,
    script_tests,
)
from assay.errors import UsageError
from assay.types import Problem, Tests

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BenchmarkTask:
    """A task of a benchmark."""

    benchmark: str
    task_id: str


def read_task(value: object, benchmark: str = "") -> BenchmarkTask | Problem:
    """Return the task that a value of a dataset means.

    The value is a task id of ``benchmark``, or an object or its JSON: ``benchmark`` and
    ``task_id``, or tests (``own_problem``).
    """
    if not isinstance(benchmark, str):
        raise UsageError(f"benchmark: {show(benchmark)} is not a name. Give one.")
    if isinstance(value, Mapping):
        return _read_fields(value, benchmark)
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return _read_json(value, benchmark)
    return _benchmark_task(benchmark, value)


# A trainer samples each row several times, and a sandbox keeps tests that it has seen.
@functools.lru_cache(maxsize=1024)
def _read_json(text: str, benchmark: str) -> BenchmarkTask | Problem:
    try:
        fields = parse_json(text, any_number=True)
    except ValueError as error:
        raise UsageError(f"tests: {error}. Fix the dataset.") from error
    return _read_fields(fields, benchmark)


def _read_fields(fields: Fields, benchmark: str) -> BenchmarkTask | Problem:
    if fields.get("task_id") is not None:
        return _benchmark_task(fields.get("benchmark") or benchmark, fields["task_id"])
    return own_problem(fields)


def own_problem(fields: Fields) -> Problem:
    """Return a problem with tests of a dataset's own.

    ``fields`` are one of these, where a list may also be JSON:

    * ``entry_point`` and ``cases``, a list of ``{"arguments": [...], "expected": value}``, with an
      optional ``tolerance`` of floats;
    * ``stdin_cases``, a list of ``{"input": text, "output": text}``, with an optional
      ``comparison``;
    * ``code`` that asserts, with an optional ``entry_point``;
    * ``inputs`` and ``outputs``, with an optional ``fn_name``, or ``assert_case``, as in verl.
    """
    if not isinstance(fields, Mapping):
        raise UsageError(f"tests: {show(fields)} is not an object. Give one.")
    # A table has the fields of all its rows in each of them.
    present = {name: value for name, value in fields.items() if value is not None}
    for name, (read, known) in READERS.items():
        if name in present:
            if known and (unknown := sorted(set(present) - known)):
                raise UsageError(f"tests: unknown field {unknown[0]!r}. Remove it.")
            tests = read(present)
            # Equal tests are one task.
            return Problem(f"own/{codec.digest(tests_key(tests))[:16]}", "", "", tests)
    names = ", ".join(READERS)
    raise UsageError(f"tests: neither tests nor a task id. Give task_id, or one of {names}.")


def split(tests: Tests) -> tuple[Tests, ...]:
    """Return one set of tests per top-level assertion, or only the given one.

    Every set has the other statements that come before its assertion.
    """
    if tests.cases or tests.texts or tests.answer:
        return (tests,)
    body = ast.parse(tests.code).body
    asserts = [number for number, node in enumerate(body) if isinstance(node, ast.Assert)]
    if len(asserts) < 2:
        return (tests,)
    return tuple(_with_one_assertion(tests, body, number) for number in asserts)


def _with_one_assertion(tests: Tests, body: list[ast.stmt], number: int) -> Tests:
    before = [node for node in body[:number] if not isinstance(node, ast.Assert)]
    code = ast.unparse(ast.Module([*before, body[number]], []))
    return Tests(
        tests.entry_point, f"{code}\n", tests.preamble, tests.integrity,
        prompt_code=tests.prompt_code, adapter=tests.adapter,
    )  # fmt: skip


def _cases(fields: Fields) -> Tests:
    pairs = _pairs(fields["cases"], "arguments", "expected")
    name = fields.get("entry_point")
    if not isinstance(name, str) or not name:
        raise UsageError("tests: cases without entry_point. Name the function that they call.")
    tolerance = fields.get("tolerance") or 0.0
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float):
        raise UsageError(
            f"tests: tolerance {show(tolerance)} is not a number. Give one such as 1e-6."
        )
    return _function_tests(name, pairs, tolerance)


def _stdin_cases(fields: Fields) -> Tests:
    pairs = _pairs(fields["stdin_cases"], "input", "output")
    return _stdin_tests(pairs, fields.get("comparison") or "exact")


def _pairs(column: object, left: str, right: str) -> list[tuple[Any, Any]]:
    cases = _decoded(column)
    if not isinstance(cases, list) or not all(
        isinstance(case, Mapping) and {left, right} <= set(case) for case in cases
    ):
        raise UsageError(f"tests: not a list of objects with {left} and {right}. Fix the cases.")
    return [(case[left], case[right]) for case in cases]


def _code(fields: Fields) -> Tests:
    return _tests_of_code(str(fields["code"]), fields.get("entry_point"))


def _asserts(fields: Fields) -> Tests:
    asserts = _decoded(fields["assert_case"])
    lines = asserts if isinstance(asserts, list) else [asserts]
    return _tests_of_code("\n".join(map(str, lines)), fields.get("fn_name"))


def _inputs(fields: Fields) -> Tests:
    """Return the tests of a row as verl, APPS and CodeContests have it."""
    inputs, outputs = (_decoded(fields.get(name)) for name in ("inputs", "outputs"))
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise UsageError("tests: inputs and outputs are not lists. Give one output per input.")
    if len(inputs) != len(outputs):
        raise UsageError(
            f"tests: {len(inputs)} inputs and {len(outputs)} outputs. Give one output per input."
        )
    pairs = list(zip(inputs, outputs, strict=True))
    name = fields.get("fn_name")
    if not name:
        return _stdin_tests([(_joined(i), _joined(o)) for i, o in pairs], "livecodebench")
    calls = [(_arguments(arguments), _decoded(output)) for arguments, output in pairs]
    return _function_tests(name, calls, 0.0, wrapped=True)


# Ways to write tests down, by the field that shows it, with all fields; none: others are ignored.
READERS: dict[str, tuple[Callable[[Fields], Tests], set[str]]] = {
    "cases": (_cases, {"cases", "entry_point", "tolerance"}),
    "stdin_cases": (_stdin_cases, {"stdin_cases", "comparison"}),
    "code": (_code, {"code", "entry_point"}),
    "assert_case": (_asserts, set()),
    "inputs": (_inputs, set()),
}


def _tests_of_code(code: str, entry_point: str | None) -> Tests:
    try:
        nodes = ast.parse(code).body
        asserted = [ast.unparse(node) for node in nodes if isinstance(node, ast.Assert)]
        return code_tests(entry_point or function_under_test(asserted or [code]), code)
    except (SyntaxError, ValueError, IndexError) as error:
        raise UsageError(
            f"tests: no test code that calls a function ({error}). Fix it, or name the entry_point."
        ) from error


def _function_tests(
    name: str, pairs: Sequence[tuple[Any, Any]], tolerance: float, *, wrapped: bool = False
) -> Tests:
    """Return tests that call a function. APPS and verl wrap an output in a list, or do not."""
    if not pairs:
        raise UsageError("tests: there are no cases. Give at least one.")
    if not all(isinstance(arguments, list | tuple) for arguments, _ in pairs):
        raise UsageError("tests: an input is not a list of arguments. Write [x] for one argument.")
    try:
        return call_tests(name, pairs, tolerance, wrapped=wrapped)
    except ValueError as error:
        raise UsageError(f"tests: {error}. Give a number such as 1e-6.") from error


def _stdin_tests(pairs: Sequence[tuple[Any, Any]], comparison: str) -> Tests:
    if not all(isinstance(text, str) for pair in pairs for text in pair):
        raise UsageError("tests: an input or output is not text. Name an entry_point, or fix it.")
    if not any(expected.strip() for _, expected in pairs):
        raise UsageError("tests: no case expects any output, so every program passes. Add cases.")
    if comparison not in COMPARISONS:
        raise UsageError(f"comparison {comparison!r}: unknown. Choose {', '.join(COMPARISONS)}.")
    return script_tests(pairs, comparison)


def tests_key(tests: Tests) -> list[object]:
    """Return what makes own tests equal."""
    cases = tests.cases.digest if tests.cases else ""
    texts = [tests.texts.digest, tests.texts.comparison] if tests.texts else []
    return [tests.entry_point, tests.code, tests.integrity, cases, texts]


def _benchmark_task(benchmark: object, task_id: object) -> BenchmarkTask:
    if not isinstance(benchmark, str) or not benchmark:
        raise UsageError(
            f"task {task_id!r}: its benchmark is not known. Give benchmark=, a column "
            "benchmark, or tests."
        )
    if not isinstance(task_id, str) or not task_id:
        raise UsageError(f"task {task_id!r}: not a task id or tests. Check the dataset's columns.")
    return BenchmarkTask(benchmark, task_id)


def _decoded(value: object) -> object:
    """Return a value, decoded if it is JSON. Nested columns are often stored as JSON."""
    if hasattr(value, "tolist"):  # an array, as a table's reader makes it of a list
        return value.tolist()
    if not isinstance(value, str):
        return list(value) if isinstance(value, tuple) else value
    try:
        return parse_json(value, any_number=True)
    except ValueError:
        return value


def _arguments(value: object) -> object:
    """Return arguments: a list, or a text with one JSON value per line."""
    return [_decoded(line) for line in value.split("\n")] if isinstance(value, str) else value


def _joined(text: object) -> object:
    """Return a text, also if it is stored as a list of lines."""
    return "\n".join(map(str, text)) if isinstance(text, list) else text
