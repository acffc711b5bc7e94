"""Run the tests in the process that knows the answers, and call the program by a channel.

It is isolated like the programs, and from them, and judges one after the other. It accepts only
plain data from a program. Anything else counts against the program.
"""

from __future__ import annotations

import _socket  # sockets, without the many modules around them
import contextlib
import json
import math
import os
import random
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

from ..isolation.clock import CPUS, TURN, Clock
from ..judging import judge, scripts, trial, wire
from ..judging.messages import Failure, Result, TestBody
from ..judging.trial import EndedError
from ..judging.wire import Latest
from .messages import TESTS_CPU_S, TESTS_TOO_SLOW, Turn
from .sample import JOBS, LINK

LOOKS = 100  # at the tests' own work, in its limit
LARGEST_ANSWER = 64 << 20
MOST_ITEMS = 2_000_000  # of a message: each takes about 100 bytes when it is read
LOOK_EVERY_MS = 100
PIECE = 1 << 20


class TooSlowError(BaseException):
    """The program's answers keep the tests themselves busy."""


class Channel:
    """Calls of one program in its own process, with the CPU time of each call there.

    The time is the kernel's. A message is late if, since the previous one, the program used more
    than a call may, however many answers it holds. A message after the program's time does not
    count.
    """

    def __init__(self, descriptor: int, clock: Clock, cpu_s: float, call_cpu_s: float) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self._poll.register(JOBS, 0)  # only whether the harness is gone
        self._clock, self._cpu_s, self._call_cpu_s = clock, cpu_s, call_cpu_s
        self._call_ends_s = math.inf  # in the program's time
        self._answers: deque[Any] = deque()
        self._pending = 0  # calls without an answer
        self._loaded = not call_cpu_s  # else it says when its own code has run

    def send(self, calls: bytes, count: int) -> None:
        if not self._loaded:  # or it could work on its calls before its time counts
            if self._message():
                raise EndedError
            self._loaded = True
            self._late()
        self._pending += count
        try:
            wire.send_encoded(self._descriptor, calls)
        except OSError as error:
            raise EndedError from error

    def answer(self) -> trial.Answer:
        """Return the next answer: a value, or how the program failed to give one."""
        while not self._answers:
            answers = self._message()
            if self._late():
                return None, self._too_long()
            if not answers or len(answers) > self._pending:
                raise EndedError
            self._pending -= len(answers)
            self._answers.extend(answers)
        return trial.checked(self._answers.popleft())

    def exchange(self, message: bytes) -> bytes:
        """Send a message to the keeper, which runs one case, and return its answer."""
        try:
            wire.send_encoded(self._descriptor, message)
            return self._exactly(int.from_bytes(self._exactly(4), "big"))
        except OSError as error:
            raise EndedError from error

    def _message(self) -> list[Any]:
        """Return the next message, or an empty one if a call has taken too long."""
        try:
            size = int.from_bytes(self._exactly(4), "big")
            if size > LARGEST_ANSWER:
                raise EndedError
            data = self._exactly(size)
            if data.count(b",") + data.count(b"[") + data.count(b"{") > MOST_ITEMS:
                raise EndedError
            answers = json.loads(data)
        except TimeoutError:
            return []
        except (OSError, ValueError, RecursionError) as error:
            raise EndedError from error
        if type(answers) is not list:
            raise EndedError
        return answers

    def _exactly(self, size: int) -> bytes:
        pieces = []
        while size:
            while not (ready := self._poll.poll(LOOK_EVERY_MS)):
                if self._clock.now_s() > self._call_ends_s:
                    raise TimeoutError
            if any(descriptor == JOBS for descriptor, _ in ready):
                raise EOFError
            piece = os.read(self._descriptor, min(size, PIECE))
            if not piece:
                raise EndedError
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _late(self) -> bool:
        """Return whether a call took too long, and start timing the next one.

        Raise EndedError if the whole program's time is over.
        """
        lag_s, used_s = self._clock.lag_s(), self._clock.now_s()
        if used_s + lag_s * CPUS > min(self._cpu_s, self._call_ends_s):  # or it may be by now
            self._clock.settle()
            lag_s, used_s = self._clock.lag_s(), self._clock.now_s()
        if used_s > self._cpu_s:
            raise EndedError
        late = used_s > self._call_ends_s
        if self._call_cpu_s and self._loaded:
            self._call_ends_s = used_s + lag_s + self._call_cpu_s
        return late

    def _too_long(self) -> Failure:
        detail = f"used {self._call_cpu_s:g} s of CPU time in one call"
        return Failure("TimeoutError", "timeout", detail)


class Oracle:
    """A judge with the tests that it receives. It caches those of the last problems."""

    def __init__(self) -> None:
        self._link = _socket.socket(fileno=LINK)
        self._kept: Latest[str, scripts.Tests] = Latest()

    def prepare(self) -> None:
        """Do nothing: tests are made ready when they arrive."""

    def judge(self, message: list[Any]) -> Result:
        """Report how the program does that the keeper starts in this turn."""
        turn = Turn(*message)
        tests = self._tests(turn)
        channel, descriptors = self._channel()
        if channel is None:
            return Result("ended")
        try:
            # Random inputs are the same for every program, and no program can predict them.
            random.seed(turn.seed)
            with limit_work(TESTS_CPU_S):
                return tests.run(channel)
        except TooSlowError:
            return judge.fail("timeout", TESTS_TOO_SLOW)
        except MemoryError:
            return judge.fail("memory", "its answers need more memory than the tests have")
        finally:
            for descriptor in descriptors:  # which tells the keeper that the program can go
                os.close(descriptor)

    def _tests(self, turn: Turn) -> scripts.Tests:
        if turn.body_follows:
            encoded = wire.receive_encoded(JOBS)
            tests = scripts.prepare_tests(TestBody(*json.loads(encoded)))
            self._kept.add(turn.key, tests, len(encoded))
        return self._kept.items[turn.key]

    def _channel(self) -> tuple[Channel | None, list[int]]:
        """Take the next program's channel from the keeper, or None if it could not start."""
        data, passed, _, _ = self._link.recvmsg(TURN.size, _socket.CMSG_SPACE(8))
        if not data:
            raise EOFError
        if not passed:
            return None, []
        kind, start, cpu_s, call_cpu_s = TURN.unpack(data)
        numbers = passed[0][2]
        descriptors = [int.from_bytes(numbers[i : i + 4], sys.byteorder) for i in (0, 4)]
        clock = Clock(descriptors[1], kind, start)
        return Channel(descriptors[0], clock, cpu_s, call_cpu_s), descriptors


@contextlib.contextmanager
def limit_work(cpu_s: float) -> Iterator[None]:
    """Raise TooSlowError within the block once it has used this many CPU seconds.

    The timer counts ticks. It only decides when to look at the exact clock. A step of C that never
    returns to Python is ended by whoever watches from outside: the harness, or the first process of
    a container.
    """
    end_s = time.process_time() + cpu_s

    def look(_number: int, _frame: FrameType | None) -> None:
        if time.process_time() > end_s:
            raise TooSlowError

    signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, cpu_s / LOOKS, cpu_s / LOOKS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
