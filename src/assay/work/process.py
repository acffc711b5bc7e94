"""A child process and its messages: start, send, receive within a time, end.

The child talks through a socket, whose descriptor is its last argument. Messages are lines, which a
child can read with the standard library alone, or pickled objects where both sides are assay's own
code. Its standard input is a pipe that nothing is written to: the pipe is closed when this process
ends, however it ends.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

LENGTH = struct.Struct(">Q")
PIECE = 1 << 20
PROGRESS_S = 0.01  # CPU time; what is below this is not work
CPU_CLOCK = 2  # of a process, in Linux's numbers of clocks: CPUCLOCK_SCHED


class Connection:
    """One end of a pair of sockets. One thread may send while another one receives.

    Nothing is read in advance, so that ``select.poll`` shows whether there is a message.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, content: bytes) -> None:
        """Send bytes as they are. Raise OSError if the other side is gone."""
        self._end.sendall(content)

    def send_object(self, message: object) -> None:
        content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self.send(LENGTH.pack(len(content)) + content)

    def receive_object(self) -> Any:
        """Return the next object. Raise EOFError if the other side is gone."""
        (length,) = LENGTH.unpack(self.receive(LENGTH.size))
        return pickle.loads(self.receive(length))

    def receive_line(self, most_bytes: int) -> bytes:
        """Return the next line. Raise EOFError if there is none, or if it is too long."""
        line, size = [b""], 0
        while not line[-1].endswith(b"\n"):
            seen = self._receive_piece(PIECE, socket.MSG_PEEK)
            line.append(self.receive(seen.find(b"\n") + 1 or len(seen)))
            size += len(line[-1])
            if size > most_bytes:
                raise EOFError("the line is too long")
        return b"".join(line)

    def receive(self, size: int) -> bytes:
        """Return exactly so many bytes. Raise EOFError if the other side is gone."""
        pieces = []
        while size:
            pieces.append(self._receive_piece(min(size, PIECE)))
            size -= len(pieces[-1])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def shut_down(self) -> None:
        """End the conversation for both sides. Any thread may call it."""
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._end.close()

    def _receive_piece(self, size: int, flags: int = 0) -> bytes:
        try:
            piece = self._end.recv(size, flags)
        except ConnectionError as error:
            raise EOFError from error
        if not piece:
            raise EOFError
        return piece


class ChildProcess(Connection):
    """A process and the connection to it. Any thread may call ``kill`` and ``shut_down``."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        variables: Mapping[str, str] | None = None,
        folder: str | None = None,
        descriptors: Sequence[int] = (),
        silence_s: float | None = None,
    ) -> None:
        """Start a command. Raise OSError if that is impossible.

        ``variables`` replace the environment of this process. The child inherits ``descriptors``.
        ``silence_s`` is as in ``limit_silence``.
        """
        ours, theirs = socket.socketpair()
        super().__init__(ours)
        self.limit_silence(silence_s)
        end, lifeline = os.pipe()
        self._lifeline = os.fdopen(lifeline, "wb", 0)
        try:
            with theirs, os.fdopen(end, "rb") as child_end:
                self._process = subprocess.Popen(
                    [*command, str(theirs.fileno())],
                    stdin=child_end,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=variables,
                    cwd=folder,
                    start_new_session=True,  # Ctrl-C is the harness's to handle
                    pass_fds=[theirs.fileno(), *descriptors],
                )
        except OSError:
            self._release()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def limit_silence(self, seconds: float | None) -> None:
        """Raise TimeoutError when a message takes longer and the process does not work on it."""
        self._end.settimeout(seconds)

    def wait(self, seconds: float) -> int | None:
        """Return the exit code, or None if the process runs for longer than so many seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def explain_end(self, seconds: float) -> str:
        """Return how the process ended, once its connection has."""
        code = self.wait(seconds)
        if code is None:
            return "it closed its connection"
        with contextlib.suppress(ValueError):
            return signal.Signals(-code).name
        return f"exit code {code}"

    def kill(self) -> None:
        """End the process. A thread that waits for a message gets an EOFError."""
        self._process.kill()
        self._process.wait()

    def close(self, patience_s: float = 0.0) -> None:
        """End the process and free what it has here. It has so long to end its own children."""
        self.shut_down()
        self._lifeline.close()
        if patience_s:
            self.wait(patience_s)
        self.kill()
        self._release()

    def _release(self) -> None:
        super().close()
        self._lifeline.close()

    def _receive_piece(self, size: int, flags: int = 0) -> bytes:
        """Return what comes next. On a busy machine, a process that still works has more time.

        The limit is on silence: other processes may take the CPU for longer than any fixed time,
        and must not decide about a message. A process that may never answer limits its CPU time.
        """
        used_s = self._cpu_s()
        while True:
            try:
                return super()._receive_piece(size, flags)
            except TimeoutError:
                before_s, used_s = used_s, self._cpu_s()
                if used_s - before_s < PROGRESS_S:
                    raise

    def _cpu_s(self) -> float:
        with contextlib.suppress(OSError):
            return time.clock_gettime(~self._process.pid << 3 | CPU_CLOCK)
        return 0.0
