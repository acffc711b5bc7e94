"""A worker's two processes on this machine, with a pair of sockets between them."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay.errors import SandboxError
from assay.sandbox import environments
from assay.sandbox._dozing import LOOK_EVERY_S, Dozing
from assay.sandbox._inside import wire
from assay.sandbox._worker import Server, WorkerLostError, end_process

# No site packages: what a program may import does not depend on what the user has installed.
# A fixed hash seed: the order of a set must not decide a verdict.
INTERPRETER = (sys.executable, "-P", "-S", "-s", "-B")
SCRIPT = "import sys; sys.path.insert(0, sys.argv[1]); from _inside.server import main; main()"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
START_S = 60.0
START_WITH_PACKAGES_S = 300.0  # from a cold disk


def start_with(environment: str, tier: str) -> dict[str, Any]:
    """The settings that depend on the environment; SandboxError if it cannot be used."""
    if not environment:
        return {
            "interpreter": INTERPRETER,
            "variables": {},
            "allowed": (),
            "start_s": START_S,
        }
    found = environments.find(environment, tier)
    path = f"{found.folder}/bin:{ENVIRONMENT['PATH']}"
    return {
        "interpreter": (found.interpreter, "-P", "-s", "-B"),
        "variables": {"PATH": path, **dict(found.variables)},
        "allowed": found.allowed,
        "start_s": START_WITH_PACKAGES_S,
    }


class LocalServers:
    """Started when they are needed; the oracle needs the fork server's other end."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._link, theirs = socket.socketpair()
        try:
            with theirs:
                self.programs: Server = _Process({**settings, "role": "zygote"}, theirs)
        except SandboxError:
            self._link.close()
            raise

    def start_oracle(self) -> Server:
        return _Process({**self._settings, "role": "oracle", "imports": []}, self._link)

    def close(self) -> None:
        self._link.close()


class _Process(Server):
    """One isolated process that answers messages."""

    def __init__(self, settings: dict[str, Any], link: socket.socket) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [*settings["interpreter"], "-c", SCRIPT, str(Path(__file__).parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**ENVIRONMENT, **settings["variables"]},
            cwd="/",
            start_new_session=True,  # Ctrl-C is the harness's to handle
            pass_fds=[link.fileno()],
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self.begin({**settings, "link": link.fileno()})

    def send_encoded(self, message: bytes) -> None:
        try:
            wire.send_encoded(self._input.fileno(), message)
        except (OSError, ValueError) as error:
            raise WorkerLostError(str(error) or "it ended") from error

    def dozing(self, tell: Callable[[], None]) -> Dozing:
        return Dozing(self._process.pid, tell)

    def receive(self, deadline: float, dozing: Dozing | None = None) -> dict[str, Any]:
        try:
            answers = self._output.fileno()
            while (left := deadline - time.monotonic()) > 0:
                if select.select([answers], [], [], min(left, LOOK_EVERY_S))[0]:
                    break
                if dozing:
                    dozing.look()
            else:
                raise WorkerLostError("no answer in time")
            answer: dict[str, Any] = wire.receive(answers)
        except (OSError, EOFError, ValueError) as error:
            raise WorkerLostError(str(error) or "it ended") from error
        return answer

    def kill(self) -> None:
        with self._lock:
            end_process(self._process, lambda: None)
