"""Admit many at a time, or one alone: threads of one process, or of several."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Turnstile(Protocol):
    """Define a lock that many share, or one holds alone. Who waits to be alone comes first."""

    def shared(self) -> AbstractContextManager[None]: ...
    def exclusive(self) -> AbstractContextManager[None]: ...


class ThreadTurnstile:
    """Serve the threads of one process."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside = 0
        self._alone = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._alone)
            self._inside += 1
        try:
            yield
        finally:
            with self._condition:
                self._inside -= 1
                self._condition.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._alone)
            self._alone = True
            self._condition.wait_for(lambda: self._inside == 0)
        try:
            yield
        finally:
            with self._condition:
                self._alone = False
                self._condition.notify_all()


class FileTurnstile:
    """Serve the threads of several processes by locks on two files, a gate and a room.

    The kernel releases the locks of a process that ends, however it ends. Whoever wants to be alone
    closes the gate and waits until the room is empty.
    """

    def __init__(self, gate: int, room: int) -> None:
        self._held = Descriptor(gate), Descriptor(room)
        self.descriptors = (gate, room)
        self._own = threading.local()  # a lock belongs to an opened file, so each thread opens both

    @contextmanager
    def shared(self) -> Iterator[None]:
        gate, room = self._files()
        fcntl.flock(gate, fcntl.LOCK_SH)
        try:
            fcntl.flock(room, fcntl.LOCK_SH)
        finally:
            fcntl.flock(gate, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(room, fcntl.LOCK_UN)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        gate, room = self._files()
        fcntl.flock(gate, fcntl.LOCK_EX)
        try:
            fcntl.flock(room, fcntl.LOCK_EX)
            yield
        finally:
            fcntl.flock(room, fcntl.LOCK_UN)
            fcntl.flock(gate, fcntl.LOCK_UN)

    def _files(self) -> tuple[Descriptor, Descriptor]:
        if not hasattr(self._own, "files"):
            self._own.files = tuple(Descriptor(_reopen(number)) for number in self.descriptors)
        files: tuple[Descriptor, Descriptor] = self._own.files
        return files


class Descriptor:
    """Hold an open file, and close it when it is no longer needed, such as after a thread ends."""

    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        return self._number

    def __del__(self) -> None:
        os.close(self._number)


def open_file_turnstile() -> FileTurnstile:
    """Create both files, without a name."""
    return FileTurnstile(*(os.memfd_create(name) for name in ("gate", "room")))


def _reopen(descriptor: int) -> int:
    return os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
