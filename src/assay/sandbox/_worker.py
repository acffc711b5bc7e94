"""The harness's end of one fork server."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from assay.errors import SandboxError
from assay.sandbox import environments
from assay.sandbox._inside import wire

# No site packages: what a program may import does not depend on what the user has installed.
# A fixed hash seed: the order of a set must not decide a verdict.
INTERPRETER = (sys.executable, "-P", "-S", "-s", "-B")
SCRIPT = "import sys; sys.path.insert(0, sys.argv[1]); from _inside.zygote import main; main()"
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


class WorkerLostError(Exception):
    """The fork server is gone or does not answer; its sample has no verdict."""


class Worker:
    """One fork server process. ``kill`` may come from any thread."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._lock = threading.Lock()
        self.settings = settings
        self._process = subprocess.Popen(
            [*settings["interpreter"], "-c", SCRIPT, str(Path(__file__).parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**ENVIRONMENT, **settings["variables"]},
            cwd="/",
            start_new_session=True,  # Ctrl-C is the harness's to handle
        )
        try:
            self.about: dict[str, Any] = self.ask(settings, settings["start_s"])
        except WorkerLostError as error:
            self.kill()
            raise SandboxError(f"the fork server did not start ({error})") from error
        if "error" in self.about:
            self.kill()
            raise SandboxError(self.about["error"])

    def ask(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send a message and wait for its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        answers = self._process.stdout.fileno()
        try:
            wire.send(self._process.stdin.fileno(), message)
            if not select.select([answers], [], [], timeout_s)[0]:
                raise WorkerLostError(f"no answer in {timeout_s:.0f} s")
            answer: dict[str, Any] = wire.receive(answers)
        except (OSError, EOFError, ValueError) as error:
            raise WorkerLostError(str(error) or "it ended") from error
        return answer

    def kill(self) -> None:
        """End it and all it started: its input closes, and that it notices at once."""
        with self._lock:
            for stream in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):
                    stream.close()  # type: ignore[union-attr]
            try:
                self._process.wait(2)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, 9)
                self._process.wait()
