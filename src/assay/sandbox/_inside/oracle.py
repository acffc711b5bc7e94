"""The process that knows the answers: it runs the tests and calls the program through a channel.

It is isolated like the programs, apart from them, and judges one after the other. What it hears
from a program is plain data; whatever else arrives counts against the program.
"""

from __future__ import annotations

import _socket  # sockets, without the many modules around them
import json
import math
import os
import random
import signal
import sys
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any

from . import judge, trial, wire
from .latest import Latest
from .place import Place
from .trial import EndedError

CPU_S = 20.0  # of the tests' own work for one program
LARGEST_ANSWER = 64 << 20


class TooSlowError(BaseException):
    """What the program answered keeps the tests themselves busy."""


class Channel:
    """Calls of one program in its own process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._answers: deque[Any] = deque()
        self._cpu_s, self._most_cpu_s = 0.0, math.inf  # as the program says: it may lie and live

    def send(self, calls: bytes) -> None:
        try:
            wire.send_encoded(self._descriptor, calls)
        except OSError as error:
            raise EndedError from error

    def end_after(self, cpu_s: float) -> None:
        """Hear the program no longer than for so much of its time."""
        self._most_cpu_s = self._cpu_s + cpu_s

    def answer(self) -> trial.Answer:
        """The next one: a value, or how the program failed to give one."""
        while not self._answers:
            try:
                cpu_s, answers = wire.receive(self._descriptor, LARGEST_ANSWER)
                self._cpu_s = float.__pos__(cpu_s)
                self._answers.extend(answers)
            except (OSError, EOFError, ValueError, TypeError, RecursionError) as error:
                raise EndedError from error
            if self._cpu_s > self._most_cpu_s:
                raise EndedError
        return trial.checked(self._answers.popleft())


class Oracle:
    """Judges with the tests it is sent, and keeps those of the last problems."""

    def __init__(self, jobs: int, link: int) -> None:
        self._jobs = jobs
        self._link = _socket.socket(fileno=link)
        self._kept: Latest[str, trial.Tests] = Latest()
        signal.signal(signal.SIGPROF, _too_slow)

    def judge(self, job: dict[str, Any]) -> dict[str, Any]:
        """How the program does that the fork server starts for this job."""
        tests = self._tests(job)
        descriptor = self._channel()
        if descriptor is None:
            return {"ended": True}
        try:
            random.seed(0)  # tests that draw their inputs draw the same for every program
            signal.setitimer(signal.ITIMER_PROF, CPU_S)
            return tests.run(Channel(descriptor))
        except TooSlowError:
            return judge.fail("timeout", "its answers keep the tests busy for too long")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            os.close(descriptor)  # which tells the fork server that the program can go

    def _tests(self, job: dict[str, Any]) -> trial.Tests:
        if job["body_follows"]:
            encoded = wire.receive_encoded(self._jobs)
            self._kept.add(job["key"], trial.made(json.loads(encoded)), len(encoded))
        return self._kept.items[job["key"]]

    def _channel(self) -> int | None:
        """To the next program, from the fork server; none if it could not be started."""
        data, passed, _, _ = self._link.recvmsg(1, _socket.CMSG_LEN(4))
        if not data:
            raise EOFError
        return int.from_bytes(passed[0][2], sys.byteorder) if passed else None


def start(
    _place: Place, jobs: int, settings: dict[str, Any]
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return Oracle(jobs, settings["link"]).judge


def _too_slow(_number: int, _frame: FrameType | None) -> None:
    raise TooSlowError
