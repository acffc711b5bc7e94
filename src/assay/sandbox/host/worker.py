"""Talk to one worker: a fork server for programs, and an oracle for their tests."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from assay.errors import SandboxError
from assay.sandbox.host.report import SandboxFailure, WorkerReport, parse_report
from assay.sandbox.inside.isolation.machine import work_of
from assay.sandbox.inside.judging import wire
from assay.sandbox.inside.judging.messages import read_result
from assay.sandbox.inside.judging.wire import Latest
from assay.sandbox.inside.serving.messages import (
    TESTS_TOO_SLOW,
    About,
    Beginning,
    Order,
    RoleName,
    Settings,
    Turn,
)

WORKING = 0.1  # of a core: what is below this, and has nothing to run, is dozing
REPORT_S = 20.0  # for the report on a program whose tests are done


@dataclass(frozen=True, slots=True)
class Start:
    """The way to start a worker's interpreter, and what its programs get in addition."""

    interpreter: tuple[str, ...]
    start_s: float
    variables: dict[str, str] = field(default_factory=dict)
    allowed: tuple[str, ...] = ()
    private: tuple[str, ...] = ()  # paths that no program may see


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """A worker's settings. Workers with equal settings can take each other's jobs."""

    inside: Settings
    interpreter: tuple[str, ...]
    start_s: float


class WorkerLostError(Exception):
    """A process of the worker is gone or does not answer."""


class LateError(WorkerLostError):
    """A process of the worker does not answer in time."""


class BusyTestsError(WorkerLostError):
    """A program's answers keep its tests busy beyond their time."""


def end_process(process: subprocess.Popen[bytes], last_resort: Callable[[], None]) -> None:
    """Close the process's input, which ends it.

    If it still runs after 2 s, call ``last_resort``, then kill it.
    """
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            stream.close()  # type: ignore[union-attr]
    try:
        process.wait(2)
    except subprocess.TimeoutExpired:
        last_resort()
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class ProcessWatch(Protocol):
    """A watch over processes while they do not answer."""

    def look(self) -> bool:
        """Return whether more time than planned makes sense, because CPU time is limited."""
        ...


class Dozing:
    """A watch that calls ``on_idle`` once, when a process and those below it do almost nothing."""

    def __init__(self, pid: int, on_idle: Callable[[], None]) -> None:
        self._pid = pid
        self._on_idle: Callable[[], None] | None = on_idle
        self._latest = (time.monotonic(), 0.0)

    def look(self) -> bool:
        if self._on_idle is None:
            return False
        before, used_before = self._latest
        used, runnable = work_of(self._pid)
        now, _ = self._latest = time.monotonic(), used
        # The first look has no earlier one to compare with.
        if used_before and not runnable and used - used_before < WORKING * (now - before):
            self._on_idle()
            self._on_idle = None
        return False


class WorkerServer:
    """One isolated process that answers messages."""

    about: About

    def begin(self, role: RoleName, link: int, settings: WorkerSettings) -> None:
        """Send the server its settings. Raise SandboxError if it cannot use them."""
        try:
            self.send(Beginning(role, link, settings.inside))
            answer = self.receive_any(time.monotonic() + settings.start_s)
        except WorkerLostError as error:
            self.kill()
            raise SandboxError(f"the fork server did not start ({error})") from error
        if isinstance(answer, str):
            self.kill()
            raise SandboxError(answer)
        self.about = About(*answer)

    def send(self, message: Beginning | Order | Turn) -> None:
        self.send_encoded(wire.dumps(message))

    def send_encoded(self, message: bytes) -> None:
        """Send a message. Raise WorkerLostError if the process is gone."""
        raise NotImplementedError

    def receive(self, deadline: float, *looks: ProcessWatch | None) -> list[Any]:
        """Return the next answer. Raise WorkerLostError if it is late or reports a failure."""
        answer = self.receive_any(deadline, *looks)
        if answer == TESTS_TOO_SLOW:
            raise BusyTestsError(answer)
        if isinstance(answer, str):
            raise WorkerLostError(answer)
        return answer

    def receive_any(self, deadline: float, *looks: ProcessWatch | None) -> list[Any] | str:
        """Return the next answer, even a failure. Raise LateError if it is late.

        Every second without an answer, the ``looks`` look at the processes.
        """
        raise NotImplementedError

    def cpu_s(self) -> float:
        """Return the CPU seconds of the process and its descendants, or 0 if unknown."""
        return 0.0

    def dozing(self, on_idle: Callable[[], None]) -> ProcessWatch | None:
        """Return a detector for a process that only waits, or None if that cannot be seen."""
        raise NotImplementedError

    def busy(self) -> ProcessWatch | None:
        """Return a detector for an oracle that works too long, or None if it is ended inside."""
        return None

    def kill(self) -> None:
        """End the process and all it started."""
        raise NotImplementedError


class Servers(Protocol):
    """The source of a worker's two processes."""

    programs: WorkerServer

    def start_oracle(self) -> WorkerServer: ...
    def close(self) -> None: ...


class Worker:
    """Two servers that judge programs. Any thread may call ``kill``, one at a time the rest."""

    def __init__(self, settings: WorkerSettings, servers: Servers) -> None:
        self.settings = settings
        self._servers = servers
        self._programs = servers.programs
        self._oracle: WorkerServer | None = None
        self._known: Latest[str, None] = Latest()  # to the oracle
        self._killed = False

    @property
    def limits_by(self) -> str:
        """Return the kernel feature that limits the tree, or an empty text if it is watched."""
        return self._programs.about.limits_by

    def judge(
        self, order: Order, timeout_s: float, doze: Callable[[], None]
    ) -> WorkerReport | SandboxFailure:
        """Return the outcome of a program whose tests run in its own process.

        ``doze`` is called when the program has been waiting for something, not working.
        """
        self._programs.send(order)
        deadline = time.monotonic() + timeout_s
        return parse_report(self._programs.receive(deadline, self._programs.dozing(doze)))

    def judge_apart(
        self,
        order: Order,
        key: str,
        seed: str,
        tests: Callable[[], bytes],
        timeout_s: float,
        doze: Callable[[], None],
    ) -> WorkerReport | SandboxFailure:
        """Judge a program whose tests run in the oracle, which caches them by ``key``.

        Random inputs of the tests depend on the ``seed``.
        """
        if self._oracle is None:
            self._oracle = self._started_oracle()
        follows = key not in self._known.items
        try:
            body = tests() if follows else b""
        except ValueError as error:  # nothing was sent yet, so the worker can go on
            return SandboxFailure(f"the benchmark's own tests are damaged: {error}")
        self._oracle.send(Turn(key, seed, follows))
        if follows:
            self._oracle.send_encoded(body)
            self._known.add(key, None, len(body))
        self._programs.send(order)
        deadline = time.monotonic() + timeout_s
        dozing, busy = self._programs.dozing(doze), self._oracle.busy()
        result = read_result(self._oracle.receive(deadline, dozing, busy))
        # Tests that worked for longer than planned leave no time.
        deadline = max(deadline, time.monotonic() + REPORT_S)
        return parse_report(self._programs.receive(deadline), result)

    def cpu_s(self) -> float:
        """Return the CPU seconds of both processes and of all that they started."""
        return sum(server.cpu_s() for server in (self._programs, self._oracle) if server)

    def kill(self) -> None:
        self._killed = True
        self._servers.close()
        for server in (self._programs, self._oracle):
            if server:
                server.kill()

    def _started_oracle(self) -> WorkerServer:
        oracle = self._servers.start_oracle()
        if self._killed:
            oracle.kill()
            raise WorkerLostError("stopped")
        return oracle
