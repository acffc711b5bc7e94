"""Control one judge process from the harness."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from assay.errors import SandboxError
from assay.sandbox import Item
from assay.sandbox.judges.messages import (
    Connection,
    ContextsSent,
    JudgeStageEnd,
    JudgeStageStart,
    Opening,
    ToHarness,
    ToJudge,
)

SCRIPT = (
    "import sys; sys.path.append(sys.argv[1]); from assay.sandbox.judges.main import main;"
    "main(int(sys.argv[2]))"
)
INTERPRETER = (sys.executable, "-P", "-B", "-c", SCRIPT, str(Path(__file__).parents[3]))
CLOSE_S = 10.0  # for all its workers to end


class JudgeProcess:
    """Hold a process with its own sandbox. One thread sends, one receives, any may close."""

    def __init__(self, opening: Opening) -> None:
        self.workers = opening.workers
        self.closed = False
        self._contexts = ContextsSent()
        ours, theirs = socket.socketpair()
        self._connection = Connection(ours)
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [*INTERPRETER, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C is the harness's to handle
                    pass_fds=[theirs.fileno(), opening.gate, opening.room],
                )
        except OSError as error:
            ours.close()
            raise SandboxError(
                f"sandbox: no judge process can start ({error}). "
                "Check the limits on memory and processes."
            ) from error
        self._send(opening)

    def fileno(self) -> int:
        return self._connection.fileno()

    @property
    def pid(self) -> int:
        return self._process.pid

    def begin(self, stage: Any) -> None:
        """Send a stage. Items can follow."""
        self._send(JudgeStageStart(stage))

    def put(self, items: Iterable[Item[Any, Any]]) -> None:
        self._send(self._contexts.pack(items))

    def end(self) -> None:
        """Say that no more items of the stage follow."""
        self._send(JudgeStageEnd())

    def receive(self) -> ToHarness:
        """Return the next message. Raise EOFError if the process is gone."""
        message: ToHarness = self._connection.receive()
        return message

    def explain_end(self) -> str:
        """Return how the process ended, once its connection has."""
        try:
            code = self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            return "it closed its connection"
        with contextlib.suppress(ValueError):
            return signal.Signals(-code).name
        return f"exit code {code}"

    def shut_down(self) -> None:
        """Ask the process to end all its workers and itself, and do not wait."""
        self.closed = True
        with contextlib.suppress(OSError):
            self._connection.shut_down()

    def close(self) -> None:
        """End the process and all its workers."""
        self.shut_down()
        try:
            self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its workers notice, and end themselves
            self._process.wait()
        self._connection.close()

    def _send(self, message: ToJudge) -> None:
        # Whoever receives learns that a process is gone, and what that means.
        with contextlib.suppress(OSError):
            self._connection.send(message)
