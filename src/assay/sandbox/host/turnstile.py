"""Admit many at a time, or one alone: threads of one process, or of several."""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

EMPTY_S = 30.0  # that others are held back until those inside have left
LOOK_S = 0.01
REST = struct.Struct("=d?")  # content of a gate's file: see ``Doors``
YES = b"\1"


class Doors(Protocol):
    """Define a gate to a room. Everybody passes the gate; who wants to be alone keeps it closed."""

    def close_gate(self) -> None: ...
    def open_gate(self) -> None: ...
    def is_empty(self) -> bool:
        """Return whether nobody is in the room. Nobody can enter: the gate is closed."""
        ...

    def stay(self) -> None:
        """Count as one of those in the room."""
        ...

    def leave(self) -> None: ...
    def rest(self) -> tuple[float, bool]:
        """Return until when the gate rests, and whether it has held anybody back since."""
        ...

    def set_rest(self, until_s: float) -> None: ...


class Turnstile:
    """Define a lock that many share, or one holds alone. Who waits to be alone comes first."""

    def shared(self) -> AbstractContextManager[None]:
        raise NotImplementedError

    def exclusive(self) -> AbstractContextManager[None]:
        """Be alone for as long as it takes."""
        raise NotImplementedError

    @contextmanager
    def alone_for(self, most_s: float) -> Iterator[None]:
        """Be alone for at most ``most_s`` seconds, then beside others.

        Others are held back for at most that and ``EMPTY_S`` at a time. If they were, nobody can
        be alone in this way for as long afterwards.
        """
        doors = self._doors()
        began = _enter_alone(doors)
        lock, admitted = threading.Lock(), False

        def admit() -> None:
            nonlocal admitted
            with lock:
                if not admitted:
                    admitted = True
                    doors.stay()
                    _admit(doors, began)

        timer = threading.Timer(most_s, admit)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            admit()
            doors.leave()

    def _doors(self) -> Doors:
        """Return the doors for the calling thread. Other threads may open and leave by them."""
        raise NotImplementedError


def _enter_alone(doors: Doors) -> float:
    """Be the only one in the room, and return since when others are held back."""
    while True:
        time.sleep(max(0.0, doors.rest()[0] - time.monotonic()))
        doors.close_gate()
        began = time.monotonic()
        while doors.rest()[0] <= began and time.monotonic() < began + EMPTY_S:
            if doors.is_empty():
                return began
            time.sleep(LOOK_S)
        _admit(doors, began)


def _admit(doors: Doors, began: float) -> None:
    """Open the gate, for at least as long as it was closed if that has held anybody back."""
    until_s, held_back = doors.rest()
    doors.set_rest(2 * time.monotonic() - began if held_back else until_s)
    doors.open_gate()


class ThreadTurnstile(Turnstile):
    """Serve the threads of one process."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside = 0
        self._alone = False
        self._rests_until = 0.0
        self._held_back = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._condition:
            self._held_back |= self._alone
            self._condition.wait_for(lambda: not self._alone)
            self._inside += 1
        try:
            yield
        finally:
            self.leave()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        self.close_gate()
        with self._condition:
            self._condition.wait_for(lambda: self._inside == 0)
        try:
            yield
        finally:
            self.open_gate()

    def _doors(self) -> Doors:
        return self

    def close_gate(self) -> None:
        with self._condition:
            self._condition.wait_for(lambda: not self._alone)
            self._alone = True

    def open_gate(self) -> None:
        with self._condition:
            self._alone = False
            self._condition.notify_all()

    def is_empty(self) -> bool:
        return self._inside == 0

    def stay(self) -> None:
        with self._condition:
            self._inside += 1

    def leave(self) -> None:
        with self._condition:
            self._inside -= 1
            self._condition.notify_all()

    def rest(self) -> tuple[float, bool]:
        return self._rests_until, self._held_back

    def set_rest(self, until_s: float) -> None:
        self._rests_until, self._held_back = until_s, False


class FileTurnstile(Turnstile):
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
        doors = self._doors()
        doors.enter()
        try:
            yield
        finally:
            doors.leave()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        doors = self._doors()
        doors.close_gate()
        try:
            fcntl.flock(doors.room, fcntl.LOCK_EX)
            yield
        finally:
            doors.leave()
            doors.open_gate()

    def _doors(self) -> _FileDoors:
        if not hasattr(self._own, "doors"):
            self._own.doors = _FileDoors(*(Descriptor(_reopen(one)) for one in self.descriptors))
        doors: _FileDoors = self._own.doors
        return doors


class _FileDoors:
    def __init__(self, gate: Descriptor, room: Descriptor) -> None:
        self.gate, self.room = gate, room

    def enter(self) -> None:
        if not _try_lock(self.gate, fcntl.LOCK_SH):
            os.pwrite(self.gate.fileno(), YES, REST.size - 1)
            fcntl.flock(self.gate, fcntl.LOCK_SH)
        try:
            self.stay()
        finally:
            self.open_gate()

    def close_gate(self) -> None:
        fcntl.flock(self.gate, fcntl.LOCK_EX)

    def open_gate(self) -> None:
        fcntl.flock(self.gate, fcntl.LOCK_UN)

    def is_empty(self) -> bool:
        return _try_lock(self.room, fcntl.LOCK_EX)

    def stay(self) -> None:
        fcntl.flock(self.room, fcntl.LOCK_SH)

    def leave(self) -> None:
        fcntl.flock(self.room, fcntl.LOCK_UN)

    def rest(self) -> tuple[float, bool]:
        content = os.pread(self.gate.fileno(), REST.size, 0)
        until_s, held_back = REST.unpack(content.ljust(REST.size, b"\0"))
        return until_s, held_back

    def set_rest(self, until_s: float) -> None:
        os.pwrite(self.gate.fileno(), REST.pack(until_s, False), 0)


def _try_lock(file: Descriptor, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
    return os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)
