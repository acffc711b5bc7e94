"""An answer that is a literal. It is parsed and compared with the expected one, never executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from assay.data import plain
from assay.extract.answers import UNPARSABLE, AnswerKind, Decision, answer_kinds
from assay.extract.answers._places import (
    UnparsableError,
    find_answer,
    read_comparison,
    read_operand,
)
from assay.extract.rule import ExtractionTask, Found
from assay.types import Tests

SHORT = 200
NOT_A_LITERAL = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)


def parse_literal(answer: str) -> Any:
    """Return the value of a literal. Raise UnparsableError for any other expression."""
    operand = read_operand(answer)
    try:
        return ast.literal_eval(operand)
    except NOT_A_LITERAL as error:
        raise UnparsableError("not a literal") from error


def find(text: str, _task: ExtractionTask) -> Found | None:
    """Return the literal in a text: the right side of the assertion, if it is one."""
    return find_answer(text, parse_literal, _sides)


def check(answer: str, tests: Tests) -> Decision:
    """Compare a literal with the expected value, as ``==`` does."""
    assert tests.cases is not None
    ((expected,),) = tests.cases.expected.values()
    wanted = plain.decode(expected)
    try:
        got = parse_literal(answer)
        if got == wanted:
            return Decision(True, "passed")
    except UnparsableError as error:
        return Decision(False, UNPARSABLE, f"{error}: {answer[:SHORT]}")
    except RecursionError:
        return Decision(False, UNPARSABLE, "too deeply nested")
    return Decision(False, "wrong-answer", "", _show(wanted), _show(got))


def _show(value: Any) -> str:
    """Return the beginning of a value. One with thousands of digits cannot be written."""
    try:
        return f"{value!r:.{SHORT}}"
    except (ValueError, RecursionError):
        return "a number that is too long"


def _sides(part: str) -> Iterator[str]:
    if sides := read_comparison(part):
        left, right = sides
        yield from (right, left)
    elif "==" in part and "assert" in part:
        yield part.partition("==")[2].strip()


answer_kinds.register("literal")(AnswerKind("a literal", find, check))
