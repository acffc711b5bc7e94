"""Answer the calls of separated tests, in the program's process, with plain data.

The other side trusts nothing from here. A program may answer in its own way, but gains nothing: it
does not know what is expected.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NoReturn

from . import judge, wire

FLUSH_S = 0.002  # many short calls share a message
LOOKS = 16  # at a call, in its CPU limit
LOOK_S = 0.05  # of CPU time, where a call has no limit


def serve(
    namespace: dict[str, object],
    program: str,
    adapter: CodeType | None,
    entry_point: str,
    to_data: Callable[[Any], Any],
    call_cpu_s: float,
    channel: int,
) -> NoReturn:
    """Load the program, then answer until the other side needs no more."""
    unloaded = judge.load(namespace, program, adapter)
    answers = Answers(channel)
    if call_cpu_s:
        wire.send(channel, [])  # the time for loading is not the first call's
    # An answer before a call that never ends arrives, whatever the machine does meanwhile.
    answers.flush_every(call_cpu_s / LOOKS if call_cpu_s else LOOK_S)
    while True:
        for positional, named in wire.receive_calls(channel):
            if unloaded:
                answers.add(unloaded)
                continue
            answers.calling = True
            answer = judge.call(namespace, entry_point, positional, named, to_data)
            answers.calling = False
            answers.add(answer)
        judge.flush_output()
        answers.flush()


class Answers:
    """Answers on their way. Those before a long call do not wait for it."""

    def __init__(self, channel: int) -> None:
        self._channel = channel
        self._waiting: list[Any] = []
        self._flushed = time.monotonic()
        self.calling = False

    def add(self, answer: Any) -> None:
        self._waiting.append(answer)
        if time.monotonic() - self._flushed > FLUSH_S:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            wire.send(self._channel, self._waiting)
            self._waiting = []
        self._flushed = time.monotonic()

    def flush_every(self, cpu_s: float) -> None:
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, cpu_s, cpu_s)

    def _look(self, _number: int, _frame: FrameType | None) -> None:
        if self.calling:
            self.flush()
