"""Run as a judge process: stages in, answers out, until the harness is gone."""

from __future__ import annotations

import contextlib
import gc
import os
import queue
import socket
import sys
import time
from typing import Any

from assay.errors import AssayError, SandboxError
from assay.sandbox.host.fork_servers import SharedSandboxSettings
from assay.sandbox.host.tiers import TIERS
from assay.sandbox.judges.judge_messages import (
    Failed,
    Finished,
    Opening,
    StageAnswers,
    StageInbox,
)
from assay.sandbox.kinds.process import TierSandbox
from assay.work import FileRWLock, run_in_background
from assay.work.process import Connection

LINGER_S = 0.002  # that an answer waits for others, if more items are being worked on
CLEAN_UP_S = 20.0
SWITCH_S = 0.0005  # a worker that waits for this interpreter costs more than a switch of threads


def main(descriptor: int) -> None:
    """Serve the harness at the other end of a socket. Never return."""
    sys.setswitchinterval(SWITCH_S)
    gc.freeze()  # modules stay; looking through them again and again takes time
    connection = Connection(socket.socket(fileno=descriptor))
    try:
        opening: Opening = connection.receive_object()
        if opening.cores:  # one may have gone
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, opening.cores)
        for own in (descriptor, opening.gate, opening.room):
            os.set_inheritable(own, False)
        shared = SharedSandboxSettings(
            opening.seed, FileRWLock(opening.gate, opening.room), opening.dozing
        )
        sandbox = TierSandbox(opening.workers, TIERS[opening.tier], opening.python, None, shared)
        _JudgeServer(connection, sandbox).serve()
    except EOFError:
        os._exit(0)


class _JudgeServer:
    """The sandbox, and the threads that talk to the harness."""

    def __init__(self, connection: Connection, sandbox: TierSandbox) -> None:
        self._connection = connection
        self._sandbox = sandbox
        self._inbox = StageInbox()
        self._outbox: queue.SimpleQueue[tuple[int, Any] | Finished | Failed] = queue.SimpleQueue()
        self._answered = 0

    def serve(self) -> None:
        """Run one stage after the other."""
        run_in_background(self._read)
        run_in_background(self._write)
        for stage in self._inbox.stages():
            try:
                stage.run(self._sandbox, self._inbox.items(), self._answer)
                self._outbox.put(Finished())
            except Exception as error:
                self._outbox.put(Failed(_portable(error)))

    def _answer(self, tag: int, result: Any) -> None:
        self._outbox.put((tag, result))

    def _read(self) -> None:
        """Receive everything at once, so that the end of the harness is noticed at any time."""
        try:
            while True:
                self._inbox.put(self._connection.receive_object())
        except EOFError:
            pass
        except Exception as error:  # a stage that cannot be imported here
            self._outbox.put(Failed(_portable(error)))
            time.sleep(CLEAN_UP_S)
        finally:
            self._end()

    def _write(self) -> None:
        """Send answers, several at a time while there is more work."""
        try:
            while True:
                message: Any = self._outbox.get()
                answers: list[tuple[int, Any]] = []
                while not isinstance(message, Finished | Failed):
                    answers.append(message)
                    self._answered += message[1] is not None
                    if len(answers) == 1 and self._answered < self._inbox.received:
                        time.sleep(LINGER_S)
                    if self._outbox.empty():
                        break
                    message = self._outbox.get()
                if answers:
                    self._connection.send_object(StageAnswers(answers))
                if isinstance(message, Finished | Failed):
                    self._connection.send_object(message)
        except OSError:
            self._end()

    def _end(self) -> None:
        """End all workers and this process. Its child processes end with it."""
        run_in_background(_exit_late)
        self._sandbox.close()
        os._exit(0)


def _exit_late() -> None:
    time.sleep(CLEAN_UP_S)
    os._exit(1)


def _portable(error: Exception) -> Exception:
    """Return an error that can be raised in the harness."""
    if isinstance(error, AssayError):
        return error
    return SandboxError(f"judge process: {type(error).__name__}: {error}")
