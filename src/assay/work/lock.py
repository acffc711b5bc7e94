"""A readers-writer lock that prefers writers, for the threads of one process or of several.

A writer first blocks new readers, then waits until those inside have left. A writer with a time
limit (``exclusive_for``) lets readers in again when its time is over, and goes on as one of them.
So that a queue of such writers cannot keep readers out, they pause after readers were blocked.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

DRAIN_S = 30.0  # that a writer with a time limit blocks new readers until the others have left
LOOK_S = 0.01
PAUSE = struct.Struct("=d?")  # content of the gate's file: see ``LockState.pause``
YES = b"\1"


class LockState(Protocol):
    """The state of a lock, as the calling thread changes it."""

    def enter(self) -> None:
        """Become a reader, as soon as no writer blocks readers."""
        ...

    def block_readers(self) -> None:
        """Block new readers and other writers."""
        ...

    def admit_readers(self) -> None: ...
    def has_no_readers(self) -> bool:
        """Return whether all readers have left. New ones are blocked."""
        ...

    def add_reader(self) -> None: ...
    def remove_reader(self) -> None: ...
    def pause(self) -> tuple[float, bool]:
        """Return until when writers pause, and whether a reader was blocked since the last one."""
        ...

    def set_pause(self, until_s: float) -> None: ...


class RWLock:
    """A lock that many share, or one holds alone. Who waits to be alone comes first."""

    @contextmanager
    def shared(self) -> Iterator[None]:
        state = self._state()
        state.enter()
        try:
            yield
        finally:
            state.remove_reader()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock alone for as long as it takes."""
        state = self._state()
        state.block_readers()
        try:
            while not state.has_no_readers():
                time.sleep(LOOK_S)
            yield
        finally:
            state.add_reader()
            state.admit_readers()
            state.remove_reader()

    @contextmanager
    def exclusive_for(self, most_s: float) -> Iterator[None]:
        """Hold the lock alone for at most ``most_s`` seconds, then share it.

        Others are blocked for at most that and ``DRAIN_S`` at a time. If they were, nobody can
        hold it in this way for as long afterwards.
        """
        state = self._state()
        began = _drain(state)
        lock, shares = threading.Lock(), False

        def share() -> None:
            nonlocal shares
            with lock:
                if not shares:
                    shares = True
                    state.add_reader()
                    _admit(state, began)

        timer = threading.Timer(most_s, share)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            share()
            state.remove_reader()

    def _state(self) -> LockState:
        """Return the state for the calling thread. Other threads may admit readers by it."""
        raise NotImplementedError


def _drain(state: LockState) -> float:
    """Wait until there are no readers. Return since when new ones are blocked."""
    while True:
        time.sleep(max(0.0, state.pause()[0] - time.monotonic()))
        state.block_readers()
        began = time.monotonic()
        while state.pause()[0] <= began and time.monotonic() < began + DRAIN_S:
            if state.has_no_readers():
                return began
            time.sleep(LOOK_S)
        _admit(state, began)


def _admit(state: LockState, began: float) -> None:
    """Admit readers, for at least as long as they were blocked if there were any."""
    until_s, blocked = state.pause()
    state.set_pause(2 * time.monotonic() - began if blocked else until_s)
    state.admit_readers()


class ThreadRWLock(RWLock):
    """A lock for the threads of one process."""

    def __init__(self) -> None:
        self._threads = _ThreadState()

    def _state(self) -> LockState:
        return self._threads


class _ThreadState:
    """The numbers that all threads share."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._readers = 0
        self._is_blocked = False
        self._pause_until = 0.0
        self._has_blocked = False

    def enter(self) -> None:
        with self._condition:
            self._has_blocked |= self._is_blocked
            self._condition.wait_for(lambda: not self._is_blocked)
            self._readers += 1

    def block_readers(self) -> None:
        with self._condition:
            self._condition.wait_for(lambda: not self._is_blocked)
            self._is_blocked = True

    def admit_readers(self) -> None:
        with self._condition:
            self._is_blocked = False
            self._condition.notify_all()

    def has_no_readers(self) -> bool:
        return self._readers == 0

    def add_reader(self) -> None:
        with self._condition:
            self._readers += 1

    def remove_reader(self) -> None:
        with self._condition:
            self._readers -= 1

    def pause(self) -> tuple[float, bool]:
        return self._pause_until, self._has_blocked

    def set_pause(self, until_s: float) -> None:
        self._pause_until, self._has_blocked = until_s, False


class FileRWLock(RWLock):
    """A lock for the threads of several processes, by the kernel's locks on two files.

    The kernel releases the locks of a process that ends, however it ends. A writer locks the gate,
    which every reader passes, and then the room, in which readers are.
    """

    def __init__(self, gate: int, room: int) -> None:
        self._held = Descriptor(gate), Descriptor(room)
        self.descriptors = (gate, room)
        self._own = threading.local()  # a lock belongs to an opened file, so each thread opens both

    def _state(self) -> LockState:
        if not hasattr(self._own, "state"):
            self._own.state = _FileState(*(Descriptor(_reopen(one)) for one in self.descriptors))
        state: _FileState = self._own.state
        return state


class _FileState:
    """A thread's own locks on the two files."""

    def __init__(self, gate: Descriptor, room: Descriptor) -> None:
        self.gate, self.room = gate, room

    def enter(self) -> None:
        """Pass the gate, and become a reader."""
        if not _try_lock(self.gate, fcntl.LOCK_SH):
            os.pwrite(self.gate.fileno(), YES, PAUSE.size - 1)
            fcntl.flock(self.gate, fcntl.LOCK_SH)
        try:
            self.add_reader()
        finally:
            self.admit_readers()

    def block_readers(self) -> None:
        fcntl.flock(self.gate, fcntl.LOCK_EX)

    def admit_readers(self) -> None:
        fcntl.flock(self.gate, fcntl.LOCK_UN)

    def has_no_readers(self) -> bool:
        return _try_lock(self.room, fcntl.LOCK_EX)

    def add_reader(self) -> None:
        fcntl.flock(self.room, fcntl.LOCK_SH)

    def remove_reader(self) -> None:
        fcntl.flock(self.room, fcntl.LOCK_UN)

    def pause(self) -> tuple[float, bool]:
        content = os.pread(self.gate.fileno(), PAUSE.size, 0)
        until_s, blocked = PAUSE.unpack(content.ljust(PAUSE.size, b"\0"))
        return until_s, blocked

    def set_pause(self, until_s: float) -> None:
        os.pwrite(self.gate.fileno(), PAUSE.pack(until_s, False), 0)


def _try_lock(file: Descriptor, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Descriptor:
    """An open file that is closed when it is no longer needed, such as after a thread ends."""

    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        return self._number

    def __del__(self) -> None:
        os.close(self._number)


def open_file_lock() -> FileRWLock:
    """Create both files, without a name."""
    return FileRWLock(*(os.memfd_create(name) for name in ("gate", "room")))


def _reopen(descriptor: int) -> int:
    return os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)
