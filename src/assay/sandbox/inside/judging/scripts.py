"""Judge programs by what they print for an input, and read function cases that are texts.

A program runs once per case, in a separate process. Only its input goes there. What is expected,
and the comparison, stay here. Each way to compare has a name.
"""

from __future__ import annotations

import json
import marshal
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Protocol

from . import judge, trial
from .messages import Ended, Group, Result, TestBody, Texts, read_texts
from .plain import encode

GROUP = "cases"
SHORT = 120  # characters of a text in a verdict
RELATIVE = 1e-5  # of numbers, where the comparison is tolerant


def is_exact(printed: str, expected: str) -> bool:
    """Return whether both are equal, except for newlines at the end."""
    return printed.rstrip("\n") == expected.rstrip("\n")


def is_same_as_livecodebench(printed: str, expected: str) -> bool:
    """Return whether the lines are equal without the white space around them, or as decimals."""
    return _lines_match(printed, expected, _same_decimals)


def is_close(printed: str, expected: str) -> bool:
    """Return whether the lines are equal, whatever their case, or have numbers that are close."""
    return _lines_match(printed.casefold(), expected.casefold(), _close_words)


COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "livecodebench": is_same_as_livecodebench,
    "tolerant": is_close,
    "exact": is_exact,
}


def _lines_match(printed: str, expected: str, match: Callable[[str, str], bool]) -> bool:
    actual, lines = _lines(printed), _lines(expected)
    if len(actual) != len(lines):
        return False
    return all(a == b or match(a, b) for a, b in zip(actual, lines, strict=True))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _same_decimals(printed: str, expected: str) -> bool:
    """Return whether all words are numbers with equal values, without any tolerance."""
    try:
        # The expected line is the benchmark's: a program cannot make it long.
        wanted = [Decimal(word) for word in expected.split()]
        actual = [Decimal(word) for word in printed.split(None, len(wanted))]
        return actual == wanted
    except InvalidOperation:
        return False


def _close_words(printed: str, expected: str) -> bool:
    words = expected.split()
    actual = printed.split(None, len(words))
    if len(actual) != len(words):
        return False
    return all(a == b or _is_close_number(a, b) for a, b in zip(actual, words, strict=True))


def _is_close_number(printed: str, expected: str) -> bool:
    try:
        actual, wanted = float(printed), float(expected)
    except ValueError:
        return False
    if math.isfinite(actual) and math.isfinite(wanted):
        return math.isclose(actual, wanted, rel_tol=RELATIVE)
    return _same_decimals(printed, expected)  # above all floats, every number would be the same


class Channel(Protocol):
    """Runs of one program."""

    def exchange(self, message: bytes) -> bytes: ...


class ScriptTests:
    """Cases that are run until one fails, or all of them if they are to be counted.

    After a timeout no case is run: a program that never ends would need the limit for each.
    """

    def __init__(self, texts: Texts) -> None:
        self._cases = [(_encoded(given), expected) for given, expected in texts.pairs]
        self._matches = COMPARISONS[texts.comparison]
        self._run_all = texts.run_all
        if not any(expected.strip() for _, expected in self._cases):
            raise ValueError("no case expects any output")

    def run(self, channel: Channel) -> Result:
        right, verdict = 0, judge.PASSED
        for number, (given, expected) in enumerate(self._cases, 1):
            try:
                ended = Ended(*marshal.loads(channel.exchange(given)))
            except trial.EndedError:
                verdict = Result("ended")
                break
            printed = ended.printed.decode(errors="replace")
            if not ended.reason and self._matches(printed, expected):
                right += 1
                continue
            if verdict is judge.PASSED:
                verdict = _failed(number, given, expected, printed, ended)
            if not self._run_all or ended.reason == "timeout":
                break
        return verdict._replace(groups=(Group(GROUP, right, len(self._cases)),))


def _failed(number: int, given: bytes, expected: str, printed: str, ended: Ended) -> Result:
    shown = trial.shorten(given.decode(errors="replace").strip(), SHORT)
    test = f"case {number}: {shown!r}"
    if ended.reason:
        return judge.fail(ended.reason, ended.detail, test, input=shown)
    if not printed or printed.strip() != expected.strip():  # else the white space around counts
        expected, printed = expected.strip(), printed.strip() or printed
    return judge.fail(
        "wrong-answer", "", test, input=shown,
        expected=trial.shorten(expected, SHORT), actual=trial.shorten(printed, SHORT),
    )  # fmt: skip


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def call_tests(body: TestBody, texts: Texts) -> trial.CaseTests:
    """Return tests that call a function with JSON values, one argument per line."""
    inputs = [encode([json.loads(line) for line in given.split("\n")]) for given, _ in texts.pairs]
    expected = [encode(json.loads(output)) for _, output in texts.pairs]
    return trial.CaseTests(body._replace(inputs={GROUP: inputs}, expected={GROUP: expected}))


def prepare_tests(body: TestBody) -> Tests:
    """Make tests of any kind ready to run."""
    try:
        if body.texts is None:
            return trial.CodeTests(body) if body.inputs is None else trial.CaseTests(body)
        texts = read_texts(body.texts)
        if not texts.pairs:
            raise ValueError("there are no cases")
        return ScriptTests(texts) if texts.style == "stdin" else call_tests(body, texts)
    except Exception as error:
        return trial.UnfitTests(error)


Tests = trial.CodeTests | trial.CaseTests | trial.UnfitTests | ScriptTests
