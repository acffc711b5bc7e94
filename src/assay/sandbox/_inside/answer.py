"""The program's side of separated tests: it is called with plain data and answers with plain data.

Nothing here is trusted by the other side. A program may answer in its own way, which gains it
nothing: it does not know what is expected.
"""

from __future__ import annotations

import signal
import time
from types import FrameType
from typing import Any, NoReturn

from . import judge, wire
from .plain import abridged, encode

FLUSH_S = 0.002  # many short calls share a message
LOOKS = 4  # at a call, in its CPU limit


class CallTooLongError(BaseException):
    """Raised in the midst of a call, as long as the program lets that happen."""


def serve(namespace: dict[str, object], job: dict[str, Any], channel: int) -> NoReturn:
    """Load the program, then answer until the other side has heard enough."""
    unloaded = _load(namespace, job["program"])
    call = Call(namespace, job)
    while True:
        answers: list[Any] = []
        sent = time.monotonic()
        for positional, named in wire.receive_calls(channel):
            answers.append(unloaded or call(positional, named))
            if time.monotonic() - sent > FLUSH_S:
                wire.send(channel, answers)
                answers, sent = [], time.monotonic()
        wire.send(channel, answers)


def _load(namespace: dict[str, object], program: str) -> dict[str, str] | None:
    """What went wrong, if it did."""
    try:
        code = judge.compiled(program, judge.PROGRAM)
    except judge.NOT_PYTHON as error:
        return {"raised": "", "reason": "syntax", "detail": judge.describe(error)}
    try:
        exec(code, namespace)
    except BaseException as error:
        return {**_failure(error), "raised": ""}  # not by a call
    return None


class Call:
    """Calls the program's function, for so many CPU seconds at a time."""

    def __init__(self, namespace: dict[str, object], job: dict[str, Any]) -> None:
        self._namespace, self._entry_point = namespace, job["entry_point"]
        self._cpu_s = job["limits"]["call_cpu_s"]
        self._encode = abridged if job["abridged"] else encode
        self._calls = self._seen = self._looks = 0
        self._too_long = False
        if self._cpu_s:
            signal.signal(signal.SIGPROF, self._look)
            signal.setitimer(signal.ITIMER_PROF, self._cpu_s / LOOKS, self._cpu_s / LOOKS)

    def __call__(self, positional: Any, named: Any) -> Any:
        """What it returned, in a list, or how it failed."""
        self._calls += 1
        answer = self._answer(positional, named)
        if self._too_long:
            detail = f"used {self._cpu_s:g} s of CPU time in one call"
            return {"raised": "TimeoutError", "reason": "timeout", "detail": detail}
        return answer

    def _answer(self, positional: Any, named: Any) -> Any:
        try:
            if self._entry_point not in self._namespace:
                raise NameError(f"name {self._entry_point!r} is not defined")
            function: Any = self._namespace[self._entry_point]
            result = function(*positional, **named)
        except BaseException as error:
            return _failure(error)
        try:
            return [self._encode(result)]
        except BaseException:  # its own methods fail, or lie about its type
            return [{"opaque": type(result).__name__}]

    def _look(self, _number: int, _frame: FrameType | None) -> None:
        """One timer for all calls, which costs the short ones nothing."""
        self._looks = self._looks + 1 if self._seen == self._calls else 1
        self._seen = self._calls
        if self._looks > LOOKS:
            self._too_long = True
            raise CallTooLongError


def _failure(error: BaseException) -> dict[str, str]:
    detail = judge.describe(error)
    return {"raised": type(error).__name__, "reason": judge.reason(error), "detail": detail}
