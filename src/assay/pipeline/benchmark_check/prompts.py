"""Look for mistakes in prompts: duplicates, and answers that a prompt gives away. Pure."""

from __future__ import annotations

import ast
import contextlib
import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from assay.data import plain, text_cases
from assay.errors import AssayError
from assay.pipeline.benchmark_check.findings import BenchmarkFinding
from assay.prompts import find_strategy, list_strategies
from assay.protocol import tests_digest
from assay.types import Benchmark, Problem, Tests

# Shorter bodies, such as "return x", also occur where nothing is given away.
LEAST_BODY = 20  # characters
MARKS = re.compile(r"^(>>>|\.\.\.)\s*")  # before code in examples
CANDIDATE = "candidate"  # the function's name in tests that take it as an argument
Pair = tuple[str, str]  # a call or an input, and what is expected


def list_prompts(benchmark: Benchmark) -> Iterator[tuple[Problem, str]]:
    """Yield every problem with what a chat model is sent by its first strategy."""
    build = find_strategy(list_strategies(benchmark)[0], benchmark).build
    for problem in benchmark.problems:
        text = ""
        with contextlib.suppress(AssayError):  # problems that cannot be asked in a chat
            text = "\n".join(message.content for message in build(problem, "chat").messages)
        yield problem, text or problem.prompt


def find_in_prompts(prompts: Iterable[tuple[Problem, str]]) -> Iterator[BenchmarkFinding]:
    """Yield what is wrong with the prompts of a benchmark."""
    seen: dict[str, dict[str, str]] = {}  # by prompt: the first task with each digest of tests
    for problem, prompt in prompts:
        earlier = seen.setdefault(" ".join(prompt.split()), {})
        digest = tests_digest(problem.tests)
        if digest in earlier:
            yield BenchmarkFinding("duplicate", problem.task_id, f"the same as {earlier[digest]}")
        elif earlier:
            first = next(iter(earlier.values()))
            yield BenchmarkFinding("same-prompt", problem.task_id, f"the prompt of {first}")
        earlier.setdefault(digest, problem.task_id)
        if problem.tests.answer is not None:
            continue  # the prompt has the code that the answer is about
        if gives_reference(problem, prompt):
            yield BenchmarkFinding("reference-in-prompt", problem.task_id)
        if shown := count_shown_cases(problem, prompt):
            yield BenchmarkFinding("cases-in-prompt", problem.task_id, f"{shown} of {shown}")
        name = problem.tests.entry_point
        if name and not re.search(rf"\b{re.escape(name)}\b", prompt):
            yield BenchmarkFinding("unnamed-entry-point", problem.task_id, name)


def gives_reference(problem: Problem, prompt: str) -> bool:
    """Return whether the lines of the reference's body are lines of the prompt, in one piece.

    White space around lines, comments and the marks of examples do not count.
    """
    body = _lines(_find_body(problem))
    if sum(map(len, body)) < LEAST_BODY:
        return False
    return _is_part(body, _lines(prompt))


def _find_body(problem: Problem) -> str:
    """Return what the reference adds to the prompt, or the body of its function."""
    reference, name = problem.reference, problem.tests.entry_point
    if reference.startswith(problem.prompt):
        return reference.removeprefix(problem.prompt)
    for node in _walk(reference):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if not body:
                return ""
            lines = reference.splitlines()
            return "\n".join(lines[body[0].lineno - 1 : body[-1].end_lineno])
    return reference


def count_shown_cases(problem: Problem, prompt: str) -> int:
    """Return the number of cases if the prompt shows all of them, and otherwise 0.

    A case is shown if its call (or its input) and its expected result are both in the prompt. Some
    shown cases are examples. If all are shown, a program that only knows the examples passes.
    """
    if problem.tests.is_script:
        return _count_shown_inputs(problem, _lines(prompt))
    squeezed = _squeeze(prompt)
    count = 0
    for call, expected in _list_calls(problem.tests):
        if not (call and call in squeezed and expected in squeezed):
            return 0
        count += 1
    return count


def _count_shown_inputs(problem: Problem, prompt: list[str]) -> int:
    pairs = text_cases.unpack(problem.tests.texts) if problem.tests.texts else []
    for given, expected in pairs:
        if not all(_is_part(lines, prompt) for lines in (_lines(given), _lines(expected))):
            return 0
    return len(pairs)


def _list_calls(tests: Tests) -> Iterator[Pair]:
    """Yield calls with their results. A test that is not such a call yields an empty one."""
    name = tests.entry_point
    if tests.texts or tests.adapter:
        yield "", ""
    elif tests.cases:
        for group, inputs in tests.cases.inputs.items():
            for given, expected in zip(inputs, tests.cases.expected.get(group, ()), strict=False):
                yield _call(name, plain.decode(given)), _squeeze(repr(plain.decode(expected)))
    else:
        for node in _walk(tests.code):
            if isinstance(node, ast.Assert):
                yield _read_assertion(node, (name, CANDIDATE), name)


def _call(name: str, arguments: Any) -> str:
    if not isinstance(arguments, list):
        return ""
    return _squeeze(f"{name}({', '.join(map(repr, arguments))})")


def _read_assertion(node: ast.Assert, names: tuple[str, ...], name: str) -> Pair:
    match node.test:
        case ast.Compare(ast.Call(ast.Name(called), args), [ast.Eq()], [expected]):
            if called in names:
                with contextlib.suppress(RecursionError):  # a sum of 500 terms
                    call = f"{name}({', '.join(map(ast.unparse, args))})"
                    return _squeeze(call), _squeeze(ast.unparse(expected))
    return "", ""


def _walk(code: str) -> Iterator[ast.AST]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in a benchmark's code
            yield from ast.walk(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return


def _squeeze(text: str) -> str:
    """Return a text without white space and without the difference between quotes."""
    return "".join(text.split()).replace('"', "'")


def _lines(text: str) -> list[str]:
    lines = (MARKS.sub("", line.strip()) for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _is_part(part: list[str], whole: list[str]) -> bool:
    return "\n".join(["", *part, ""]) in "\n".join(["", *whole, ""])
