"""Watches one sample from its start to its end or to a limit."""

from __future__ import annotations

import _socket
import os
import select
import time
from collections.abc import Callable
from typing import Any

from . import tree

PIECE = 1 << 16
FIRST_LOOK_S = 0.05
PATIENCE = 4  # times the wall limit, for a program that gets no CPU
STARVED = 0.1  # of the wall limit spent waiting for a CPU


class Kept:
    """The first bytes of a stream; the rest is read and forgotten, so that no writer blocks."""

    def __init__(self, room: int) -> None:
        self._room = room
        self.data = b""

    def take(self, piece: bytes) -> bool:
        self.data += piece[: self._room - len(self.data)]
        return bool(piece)


class HarnessGoneError(Exception):
    """Nobody waits for the report any more."""


class Watch:
    """How a sample's run ended: ``stopped`` says by which limit, if by one."""

    def __init__(
        self,
        limits: dict[str, Any],
        processes: Callable[[], list[int]],
        out_of_memory: Callable[[], bool],
        look_every_s: float,
    ) -> None:
        self._limits = limits
        self._processes = processes
        self._out_of_memory = out_of_memory
        self._look_every_s = look_every_s
        self._started = time.monotonic()
        self.stopped: str | None = None
        self.starved = False

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._started

    def run(
        self, sample: int, streams: dict[int, Kept], harness: int, channel: _socket.socket | None
    ) -> None:
        """``sample`` is a pidfd, ``harness`` the pipe that closes when the harness is gone; the
        ``channel`` is hung up when the tests have heard enough.
        """
        poll = select.poll()
        for descriptor in (sample, *streams):
            poll.register(descriptor, select.POLLIN)
        poll.register(harness, 0)
        if channel:
            poll.register(channel, 0)
        deadline, next_look = self._limits["wall_s"], FIRST_LOOK_S
        while self.stopped is None:
            pause = min(deadline, next_look) - self.elapsed
            for descriptor, _ in poll.poll(max(0.0, pause) * 1000 + 1):
                if descriptor == sample:
                    return
                if descriptor == harness:
                    raise HarnessGoneError
                if descriptor not in streams:
                    self.stopped = "answered"
                    return
                if not streams[descriptor].take(os.read(descriptor, PIECE)):
                    poll.unregister(descriptor)
            if self.elapsed >= deadline:
                deadline = self._extended_deadline()
            elif self.elapsed >= next_look:
                next_look = self.elapsed + self._look_every_s
                self._look()

    def _look(self) -> None:
        processes = self._processes()
        memory = self._limits["memory_mb"] << 20
        if len(processes) > self._limits["processes"]:
            self.stopped = "processes"
        elif self._out_of_memory() or tree.memory_bytes(processes, memory) > memory:
            self.stopped = "memory"
        elif len(processes) > 1 and tree.cpu_s(processes) > self._limits["cpu_s"]:
            self.stopped = "cpu"

    def _extended_deadline(self) -> float:
        """Time without a CPU does not count, within reason."""
        waited = tree.waiting_s(self._processes())
        wall = float(self._limits["wall_s"])
        if self.elapsed - waited < wall and self.elapsed < PATIENCE * wall:
            return wall + waited + FIRST_LOOK_S
        self.stopped = "wall"
        self.starved = waited > STARVED * wall
        return wall
