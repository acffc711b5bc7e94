"""The program's side of separated tests: it is called with plain data and answers with plain data.

Nothing here is trusted by the other side. A program may answer in its own way, which gains it
nothing: it does not know what is expected.
"""

from __future__ import annotations

import signal
import time
from types import FrameType
from typing import Any, NoReturn

from . import calling, wire
from .plain import abridged, encode

FLUSH_S = 0.002  # many short calls share a message
LOOKS = 16  # at a call, in its CPU limit


class CallTooLongError(BaseException):
    """Raised in the midst of a call, as long as the program lets that happen."""


def serve(namespace: dict[str, object], job: dict[str, Any], channel: int) -> NoReturn:
    """Load the program, then answer until the other side has heard enough."""
    unloaded = calling.load(namespace, job["program"])
    function = Function(namespace, job, channel)
    while True:
        for call in wire.receive_calls(channel):
            function.answer(unloaded or function.called(*call))
        function.flush()


class Function:
    """The program's, called for so many CPU seconds at a time; and its answers on their way."""

    def __init__(self, namespace: dict[str, object], job: dict[str, Any], channel: int) -> None:
        self._namespace, self._entry_point = namespace, job["entry_point"]
        self._channel = channel
        self._answers: list[Any] = []
        self._flushed = time.monotonic()
        self._cpu_s = job["limits"]["call_cpu_s"]
        self._encode = abridged if job["abridged"] else encode
        self._calls = self._seen = self._looks = 0
        self._runs = self._too_long = False
        if self._cpu_s:
            signal.signal(signal.SIGPROF, self._look)
            signal.setitimer(signal.ITIMER_PROF, self._cpu_s / LOOKS, self._cpu_s / LOOKS)

    def called(self, positional: Any, named: Any) -> Any:
        """What it returned, in a list, or how it failed."""
        self._calls += 1
        answer: Any = None
        try:
            self._runs = True
            answer = calling.result(
                self._namespace, self._entry_point, positional, named, self._encode
            )
            self._runs = False
        except CallTooLongError:
            pass  # it was just done
        if self._too_long:
            detail = f"used {self._cpu_s:g} s of CPU time in one call"
            return {"raised": "TimeoutError", "reason": "timeout", "detail": detail}
        return answer

    def answer(self, answer: Any) -> None:
        self._answers.append(answer)
        if time.monotonic() - self._flushed > FLUSH_S:
            self.flush()

    def flush(self) -> None:
        """Send what there is, if only the time that was used."""
        wire.send(self._channel, [time.process_time(), self._answers])
        self._answers, self._flushed = [], time.monotonic()

    def _look(self, _number: int, _frame: FrameType | None) -> None:
        """One timer for all calls, which costs the short ones nothing."""
        self._looks = self._looks + 1 if self._seen == self._calls else 1
        self._seen = self._calls
        if not self._runs:
            return
        if self._looks > LOOKS:
            self._too_long = True
            raise CallTooLongError
        self.flush()
