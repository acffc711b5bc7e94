"""Judge programs by what they print for an input, and read function cases that are texts.

A program runs once per case, in a separate process. Only its input goes there. What is expected,
and the comparison, stay here.
"""

from __future__ import annotations

import json
import marshal
from typing import Protocol

from . import judge, trial
from .messages import Ended, Group, Result, TestBody, Texts, read_texts
from .outputs import COMPARISONS
from .plain import encode

GROUP = "cases"
SHORT = 120  # characters of a text in a verdict


class Channel(Protocol):
    """Define runs of one program."""

    def exchange(self, message: bytes) -> bytes: ...


class ScriptTests:
    """Run cases until one fails, or all of them if they are to be counted.

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
    if body.texts is None:
        return trial.prepare_tests(body)
    texts = read_texts(body.texts)
    try:
        if not texts.pairs:
            raise ValueError("there are no cases")
        return ScriptTests(texts) if texts.style == "stdin" else call_tests(body, texts)
    except Exception as error:
        return trial.UnfitTests(error)


Tests = trial.Tests | ScriptTests
