"""Start a worker's two processes on this machine, with a pair of sockets between them."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import assay
from assay.datasets import cache_dir
from assay.errors import AssayError, SandboxError
from assay.sandbox.environments import store as environments
from assay.sandbox.environments.interpreters import Interpreter
from assay.sandbox.host.worker import (
    BusyTestsError,
    Dozing,
    LateError,
    ProcessWatch,
    Start,
    WorkerLostError,
    WorkerServer,
    WorkerSettings,
    end_process,
)
from assay.sandbox.inside.isolation.machine import LOOK_EVERY_S, Busy, work_of
from assay.sandbox.inside.judging import wire
from assay.sandbox.inside.serving.messages import (
    TESTS_CPU_S,
    TESTS_ROOM,
    TESTS_TOO_SLOW,
    RoleName,
)

# No site packages: what a program may import does not depend on what the user has installed.
# A fixed hash seed: the order of a set must not decide a verdict.
OPTIONS = ("-P", "-S", "-s", "-B")
# The code is in the working directory, not in an argument, which programs could read.
SCRIPT = (
    "import os, sys; sys.path.insert(0, os.getcwd()); os.chdir('/');"
    "from inside.serving.server import main; main()"
)
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
START_S = 60.0
CLEAN_UP_S = 30.0
START_WITH_PACKAGES_S = 300.0  # from a cold disk


def start_with(environment: str, tier: str, python: Interpreter) -> Start:
    """Return the settings that depend on the environment. Raise SandboxError if it is unusable.

    An environment has its own interpreter. One that was chosen must have the same version.
    """
    if not environment:
        return Start((python.path, *OPTIONS), START_S, private=private_paths())
    found = environments.find(environment, tier, python.minor if python.is_chosen else "")
    path = f"{found.folder}/bin:{ENVIRONMENT['PATH']}"
    return Start(
        (found.interpreter, "-P", "-s", "-B"),
        START_WITH_PACKAGES_S,
        {"PATH": path, **dict(found.variables)},
        found.allowed,
        private_paths(),
    )


@functools.cache
def private_paths() -> tuple[str, ...]:
    """Return the paths that hold tests, references or verdicts. Programs must never see them."""
    found = [str(Path(assay.__file__).parent)]
    if data := os.environ.get("ASSAY_DATA_DIR"):
        found.append(data)
    with contextlib.suppress(AssayError):  # a user without a home has no cache
        found.append(str(cache_dir()))
    return tuple(found)


class LocalServers:
    """Both servers, started when they are needed. The oracle needs the fork server's other end."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._link, theirs = map(_above_standard, socket.socketpair())
        try:
            with theirs:
                self.programs: WorkerServer = _Process(settings, "keeper", theirs)
        except SandboxError:
            self._link.close()
            raise

    def start_oracle(self) -> WorkerServer:
        return _Process(self._settings, "oracle", self._link)

    def close(self) -> None:
        self._link.close()


def _above_standard(end: socket.socket) -> socket.socket:
    """Move a descriptor above the standard streams, whose numbers may be free."""
    with end:
        return socket.socket(fileno=fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3))


class _Process(WorkerServer):
    """One isolated process on this machine."""

    def __init__(self, settings: WorkerSettings, role: RoleName, link: socket.socket) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [*settings.interpreter, "-c", SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**ENVIRONMENT, **settings.inside.variables},
            cwd=Path(__file__).parents[1],
            start_new_session=True,  # Ctrl-C is the harness's to handle
            pass_fds=[link.fileno()],
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._poll = select.poll()
        self._poll.register(self._output, select.POLLIN)
        self.begin(role, link.fileno(), settings)

    def _ask_to_end(self) -> None:
        """Make the process outside the sandbox end everything in it, however long that takes.

        If it were killed at once, it would leave what programs started: not every tier has a
        namespace that ends with its first process.
        """
        self._process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(CLEAN_UP_S)

    def send_encoded(self, message: bytes) -> None:
        try:
            wire.send_encoded(self._input.fileno(), message)
        except (OSError, ValueError) as error:
            raise WorkerLostError(str(error) or "it ended") from error

    def cpu_s(self) -> float:
        return work_of(self._process.pid)[0]

    def dozing(self, on_idle: Callable[[], None]) -> Dozing:
        return Dozing(self._process.pid, on_idle)

    def busy(self) -> Busy:
        # Nothing inside ends a step of C: the first process of a pid namespace ignores its timers.
        return Busy(self._process.pid, TESTS_ROOM * TESTS_CPU_S, BusyTestsError(TESTS_TOO_SLOW))

    def receive_any(self, deadline: float, *looks: ProcessWatch | None) -> list[Any] | str:
        try:
            answers = self._output.fileno()
            # Not select(), which refuses descriptors above 1,023: one harness has many workers.
            while not self._poll.poll(LOOK_EVERY_S * 1000):
                works = [one.look() for one in looks if one]
                if time.monotonic() > deadline and not any(works):
                    raise LateError("no answer in time")
            answer: list[Any] | str = wire.receive(answers)
        except (OSError, EOFError, ValueError) as error:
            raise WorkerLostError(str(error) or "it ended") from error
        return answer

    def kill(self) -> None:
        with self._lock:
            end_process(self._process, self._ask_to_end)
