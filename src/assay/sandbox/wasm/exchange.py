"""Exchange messages with a process that runs WebAssembly, and measure time there.

Messages are JSON lists. A watchdog sends the last one for a program that only waits.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from assay.sandbox.inside.judging import wire
from assay.sandbox.inside.judging.messages import Result, Task, read_result

TICK_S = 0.01
PATIENCE = 4  # times the wall limit, for a program that gets no CPU
STARVED = 0.1  # of the wall limit spent waiting for a CPU
# How a program's instance ended: by a limit, the stack of WebAssembly, an answer that cannot be
# read, a call that took too long, answers that keep the tests busy, by itself, or by an error.
How = Literal["", "cpu", "wall", "stack", "answer", "call", "busy tests", "exit", "trap"]


class GuestLimits(NamedTuple):
    """The limits of one program, in the guest's seconds."""

    cpu_s: float
    call_cpu_s: float
    slower: float  # than native code
    wall_s: float
    memory_mb: int


class GuestRequest(NamedTuple):
    """A program to be judged."""

    task: Task
    key: str  # of separated tests; empty: the tests are in the task
    tests: str | None  # a TestBody, unless the process has it already
    seed: str
    limits: GuestLimits


class GuestReport(NamedTuple):
    """The outcome of a program. ``lost`` says why nothing was seen of it, without blame."""

    result: Result | None = None
    ended: How = ""
    detail: str = ""
    starved: bool = False  # it waited for a CPU
    lost: str = ""
    forgotten: bool = False  # the process has no tests any more
    cpu_s: float = 0.0
    wall_s: float = 0.0

    @property
    def doubtful(self) -> bool:
        """Return whether the program has no verdict yet, by its own failure or the harness's."""
        return bool(self.starved or self.lost)


def read_request(data: list[Any]) -> GuestRequest:
    task, key, tests, seed, limits = data
    return GuestRequest(Task(*task), key, tests, seed, GuestLimits(*limits))


def read_report(data: list[Any]) -> GuestReport:
    result, *rest = data
    return GuestReport(read_result(result) if result else None, *rest)


class EpochClock(threading.Thread):
    """A clock of the engine's epochs: the CPU time of the thread that runs programs."""

    def __init__(self, engine: Any) -> None:
        super().__init__(daemon=True)
        self._engine = engine
        self.now_s = _cpu_clock()
        self._thread = threading.get_native_id()
        self._ticks = 0
        self._lock = threading.Lock()

    def run(self) -> None:
        while True:
            time.sleep(TICK_S)
            self.catch_up()

    def catch_up(self) -> None:
        """Advance all epochs that are due. This thread may have waited for a core."""
        with self._lock:
            while self._ticks < self.now_s() / TICK_S:
                self._ticks += 1
                self._engine.increment_epoch()

    def waited_s(self) -> float:
        """Return the seconds that the program's thread waited for a core; 0 if unknown."""
        try:
            fields = Path(f"/proc/self/task/{self._thread}/schedstat").read_text().split()
        except OSError:
            return 0.0
        return int(fields[1]) / 1e9 if len(fields) > 1 else 0.0


def _cpu_clock() -> Callable[[], float]:
    """Return the calling thread's CPU clock, or the process's where there is none (macOS)."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.process_time
    clock = time.pthread_getcpuclockid(threading.get_ident())
    return lambda: time.clock_gettime(clock)


class Watchdog(threading.Thread):
    """A watch that ends this process, with a last message, if a program only waits.

    No epochs pass then.
    """

    def __init__(self, replies: int, clock: EpochClock) -> None:
        super().__init__(daemon=True)
        self._replies, self._clock = replies, clock
        self._lock = threading.Lock()
        self._wall_s: float | None = None
        self._since = self._cpu = self._waited = 0.0

    def watch(self, wall_s: float) -> None:
        with self._lock:
            self._wall_s, self._since = wall_s, time.monotonic()
            self._cpu, self._waited = self._clock.now_s(), self._clock.waited_s()

    def done(self, report: GuestReport) -> None:
        with self._lock:
            self._wall_s = None
            self._send(report)

    def run(self) -> None:
        while True:
            time.sleep(0.05)
            with self._lock:
                if self._wall_s is not None:
                    self._look(self._wall_s)

    def _send(self, report: GuestReport) -> None:
        wall_s, cpu_s = self._used()
        wire.send(self._replies, report._replace(wall_s=round(wall_s, 4), cpu_s=round(cpu_s, 4)))

    def _used(self) -> tuple[float, float]:
        """Return wall and CPU seconds of the program."""
        return time.monotonic() - self._since, self._clock.now_s() - self._cpu

    def _look(self, wall_s: float) -> None:
        """Check the program's time. Work does not count here, nor does some waiting for a core."""
        used_wall_s, used_cpu_s = self._used()
        idle_s = used_wall_s - used_cpu_s
        if idle_s <= wall_s:
            return
        waited_s = self._clock.waited_s() - self._waited
        if idle_s - waited_s > wall_s or idle_s > PATIENCE * wall_s:
            starved = waited_s > STARVED * wall_s
            self._send(GuestReport(ended="wall", starved=starved))
            os._exit(0)
