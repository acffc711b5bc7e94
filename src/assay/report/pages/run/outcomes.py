"""Return what a failing test called, expected and got, with the whole statement of the test."""

from __future__ import annotations

import ast
import contextlib
import functools
import textwrap
from dataclasses import dataclass

from assay.types import Verdict

LONGEST_TEST = 4_000  # characters of a test that is parsed
LONGEST_CODE = 200_000  # of all tests of a problem
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The call of a failing test, the value that it expected, and the one it got, if known.

    ``test`` is the whole statement; a verdict has only its first line.
    """

    test: str = ""
    call: str | None = None
    expected: str | None = None
    actual: str | None = None
    difference: str | None = None  # between the two, if their texts do not show it
    input: str | None = None


def find_outcome(verdict: Verdict, tests: str = "") -> CallOutcome:
    """Return what a failed test expected and got, as far as it is known.

    ``tests`` is the test code of the problem, if it is known. Only an assertion has the value that
    test code expects.
    """
    if verdict.status != "fail":
        return CallOutcome(verdict.failing_test)
    test = complete_test(verdict.failing_test, tests)
    if verdict.reason != "wrong-answer":
        return CallOutcome(test, verdict.call, input=verdict.input)
    expected = verdict.expected
    if expected is None:
        expected = find_expected(test) or None
    return CallOutcome(
        test, verdict.call, expected, verdict.actual, verdict.difference, verdict.input
    )


def complete_test(first: str, tests: str) -> str:
    """Return the whole statement of which a verdict has the first line, or that line."""
    if not first or _parses(first) or not 0 < len(tests) <= LONGEST_CODE:
        return first
    return _find_statements(tests).get(first.strip(), first)


@functools.lru_cache(maxsize=4)  # all samples of a problem have the same tests
def _find_statements(code: str) -> dict[str, str]:
    """Return the statements of several lines by their first line."""
    found: dict[str, str] = {}
    with contextlib.suppress(*UNREADABLE):
        lines = code.splitlines()
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.stmt) and node.end_lineno != node.lineno:
                statement = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                first = lines[node.lineno - 1].strip()
                found.setdefault(first, textwrap.dedent(statement)[:LONGEST_TEST])
    return found


def _parses(text: str) -> bool:
    with contextlib.suppress(*UNREADABLE):
        ast.parse(text.strip()[:LONGEST_TEST])
        return True
    return False


def find_expected(test: str) -> str:
    """Return the right side of a test such as ``assert f(1) == 2``, or an empty text."""
    if len(test) > LONGEST_TEST:
        return ""
    with contextlib.suppress(*UNREADABLE):
        for node in ast.parse(test.strip()).body[:1]:
            if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
                compared = node.test
                if len(compared.ops) == 1 and isinstance(compared.ops[0], ast.Eq | ast.Is):
                    return ast.get_source_segment(test.strip(), compared.comparators[0]) or ""
    return ""
