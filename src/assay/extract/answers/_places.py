"""Find the answer in a model's text: in tags, in a code block, in an assertion, in a line."""

from __future__ import annotations

import ast
import contextlib
import warnings
from collections.abc import Callable, Iterator

from assay.extract.rule import Found
from assay.extract.rules.characters import without_thinking
from assay.extract.rules.fences import fenced_blocks

OPENED, CLOSED = "[ANSWER]", "[/ANSWER]"
LONGEST = 10_000  # characters of an answer; the longest right one has less than 200
MOST_PLACES = 20  # of each sort that are looked at
SOURCE = "<answer>"
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
# Invalid escapes in a model's text do not matter here.
warnings.filterwarnings("ignore", module=SOURCE)


class UnparsableError(ValueError):
    """The reason why an answer is not of the requested kind."""


def read_operand(answer: str) -> ast.expr:
    """Return the expression that an assertion ``assert expected == ANSWER`` compares with.

    A second value after a comma is the assertion's message, as Python reads it.
    """
    if len(answer) > LONGEST:
        raise UnparsableError(f"the answer has {len(answer)} characters; the limit is {LONGEST}")
    try:
        body = ast.parse(f"assert _ == {answer.strip()}", SOURCE).body
    except NOT_PYTHON as error:
        raise UnparsableError(f"not Python: {error}") from error
    match body:
        case [ast.Assert(test=ast.Compare(ops=[_], comparators=[operand]))]:
            return operand
    raise UnparsableError("not one expression")


def find_answer(
    text: str, parse: Callable[[str], object], sides: Callable[[str], Iterator[str]]
) -> Found | None:
    """Return the first answer in the places of a text, or what stands in tags for one.

    ``parse`` raises UnparsableError for what is not an answer. ``sides`` yields the parts of an
    assertion that may be the answer.
    """
    tagged: Found | None = None
    for rule, place in _places(without_thinking(text)):
        for part in _parts(rule, place, sides):
            with contextlib.suppress(UnparsableError, RecursionError):
                parse(part)
                return Found(rule, part)
        if tagged is None and rule == "tags" and place.strip():
            tagged = Found(rule, place.strip()[:LONGEST])
    return tagged


def _places(text: str) -> Iterator[tuple[str, str]]:
    """Yield the places where the answer may be, with their names, the likeliest first."""
    before, *tagged = text.split(OPENED, MOST_PLACES)
    for place in tagged:
        yield "tags", place.partition(CLOSED)[0]
    if CLOSED in before:  # the prompt has opened it
        yield "tags", before.partition(CLOSED)[0]
    yield "whole", text
    for block in fenced_blocks(text)[: -MOST_PLACES - 1 : -1]:
        yield "block", block.code
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    assertions = [line for line in lines if line.startswith("assert ")]
    for line in assertions[: -MOST_PLACES - 1 : -1]:
        yield "assertion", line
    if lines:
        yield "line", lines[-1]


def _parts(rule: str, place: str, sides: Callable[[str], Iterator[str]]) -> Iterator[str]:
    """Yield what the answer of a place may be: a side of its assertion, or all of it."""
    place = place.strip()
    if not place or len(place) > LONGEST:
        return
    blocks = fenced_blocks(place) if rule == "tags" else []
    for part in (*(block.code.strip() for block in blocks), place, place.strip("`")):
        yield from sides(part)
        yield part


def read_comparison(part: str) -> tuple[str, str] | None:
    """Return the two sides of an assertion or comparison with ``==``, or None."""
    try:
        body = ast.parse(part, SOURCE).body
    except NOT_PYTHON:
        return None
    match body:
        case [
            ast.Assert(ast.Compare(left, [ast.Eq()], [right]))
            | ast.Expr(ast.Compare(left, [ast.Eq()], [right]))
        ]:
            segments = (ast.get_source_segment(part, side) or "" for side in (left, right))
            return next(segments), next(segments)
    return None
