"""Watch one program from outside, from its start to its end or to a limit."""

from __future__ import annotations

import _socket
import contextlib
import os
import select
import time

from ..isolation.cgroup import Killer
from ..isolation.clock import FOR_EVER, Clock, PublishedClock
from ..isolation.machine import Machine
from .messages import Limits
from .place import Place

PIECE = 1 << 16
FIRST_LOOK_S = 0.05
LOOK_EVERY_S, LOOK_RARELY_S = 0.02, 0.2
PATIENCE = 4  # times the wall limit, for a program that gets no CPU
STARVED = 0.1  # of the wall limit spent waiting for a CPU
SOCKET_BYTES = 256 << 10  # that one socket holds at most, where no cgroup counts


class Kept:
    """The first bytes of a stream. The rest is read and dropped, so that no writer blocks."""

    def __init__(self, room: int, *, is_limit: bool = False) -> None:
        self._room = room
        self._is_limit = is_limit  # whether a program may not write more
        self.data = bytearray()
        self.exceeded = False

    def take(self, piece: bytes) -> None:
        left = self._room - len(self.data)
        self.exceeded |= self._is_limit and len(piece) > left
        self.data += piece[:left]

    def read_from(self, descriptor: int) -> bool:
        """Read what is available, and return False at the end."""
        try:
            piece = os.read(descriptor, PIECE)
        except ConnectionResetError:  # it ended without reading everything
            return False
        self.take(piece)
        return bool(piece)


class HarnessGoneError(Exception):
    """The harness no longer waits for the report."""


class Watch:
    """A watch over a program until it ends. ``stopped`` names the limit that ended it, if any.

    ``pressure`` says what the machine lacked for reasons outside of the program.
    """

    def __init__(self, limits: Limits, place: Place, clock: Clock, machine: Machine) -> None:
        self._limits = limits
        self._place = place
        self._tree = place.tree
        self._clock = clock
        self._machine = machine
        if isinstance(clock, PublishedClock):
            clock.publish(0.0, time.monotonic_ns())
        self._counted = place.limit is not None  # by a cgroup: the looks are an additional check
        self._look_every_s = LOOK_RARELY_S if self._counted else LOOK_EVERY_S
        self._started = time.monotonic()
        # Figures of the machine since the first look. Most programs end before it.
        self._busy_s: float | None = None
        self._idle_s = 0.0
        self._looked_s = 0.0
        self._free = 0
        self._keeper_s = time.process_time()
        self._listed_ns = 0
        self.cpu_s = 0.0
        self.stopped: str | None = None
        self.pressure = ""

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._started

    def killed_by(self) -> Killer:
        """Return the limit for which the kernel has killed a process of the program."""
        return self._place.memory.killed_by() if self._place.memory else ""

    def run(
        self, program: int, outputs: dict[int, Kept], harness: int, channel: _socket.socket | None
    ) -> None:
        """Return when the program, a pidfd, ends or must end.

        ``outputs`` are pipes and what is kept of each. ``harness`` is the pipe that closes when
        the harness is gone. The ``channel`` is closed when the tests need no more answers.
        """
        poll = select.poll()
        for descriptor in (program, *outputs):
            poll.register(descriptor, select.POLLIN)
        poll.register(harness, 0)
        if channel:
            poll.register(channel, 0)
        deadline, next_look = self._limits.wall_s, FIRST_LOOK_S
        while self.stopped is None:
            pause = min(deadline, next_look) - self.elapsed
            for descriptor, _ in poll.poll(max(0.0, pause) * 1000 + 1):
                if descriptor == program:
                    return
                if descriptor == harness:
                    raise HarnessGoneError
                if (output := outputs.get(descriptor)) is None:
                    self.stopped = "answered"
                    return
                # Nothing, if a program has read its own output meanwhile.
                with contextlib.suppress(BlockingIOError):
                    if not output.read_from(descriptor):
                        poll.unregister(descriptor)
                if output.exceeded:
                    self.stopped = "output"
                    return
            # Looks continue when the deadline is extended.
            if self.elapsed >= next_look:
                self._look()
                next_look = self.elapsed + self._pause_s()
            if self.stopped is None and self.elapsed >= deadline:
                deadline = self._extended_deadline()

    def slept_s(self) -> float:
        """Return how long the program only waited, while a CPU was idle. Call it at the end."""
        if self._busy_s is None:
            return 0.0  # it ended before the first look
        idle_s = self._machine.idle_s() - self._idle_s
        return max(0.0, min(self.elapsed - self._looked_s - self.cpu_s, idle_s))

    def finish(self, cpu_s: float) -> None:
        """Decide by the exact CPU time of all its processes, whatever ended them."""
        self.cpu_s = max(self.cpu_s, cpu_s)
        if isinstance(self._clock, PublishedClock):
            self._clock.publish(self.cpu_s, FOR_EVER)
        if self.stopped in (None, "answered") and self.cpu_s > self._limits.cpu_s:
            self.stopped = "cpu"
        if self.killed_by() == "host":
            self.pressure = "memory"

    def _look(self) -> None:
        if self._busy_s is None:
            self._busy_s, self._free = self._machine.busy_s(), self._machine.free_bytes()
            self._idle_s, self._looked_s = self._machine.idle_s(), self.elapsed
        processes = self._processes()
        memory = self._limits.memory_mb << 20
        if self._tree.threads(processes) > self._limits.processes:
            self.stopped = "processes"
        elif (killer := self.killed_by()) or self._memory_bytes(processes, memory) > memory:
            self.stopped = "memory"
            if killer == "host":
                self.pressure = "memory"
        elif self._used_s(processes) > self._limits.cpu_s:
            self.stopped = "cpu"
        elif not self._counted and self._machine.free_bytes() < self._machine.floor:
            self.stopped = "memory"
            if self._free - self._machine.free_bytes() < memory:
                self.pressure = "memory"

    def _pause_s(self) -> float:
        """Return the time until the next look, which comes when the CPU time may be used up."""
        left_s = self._limits.cpu_s - self.cpu_s
        return max(LOOK_EVERY_S, min(self._look_every_s, left_s))

    def _processes(self) -> list[int]:
        self._listed_ns = time.monotonic_ns()
        return self._place.processes(self._limits.processes)

    def _memory_bytes(self, processes: list[int], limit: int) -> int:
        used = self._tree.memory_bytes(processes, limit)
        return used if self._counted else used + self._place.sockets(processes) * SOCKET_BYTES

    def _used_s(self, processes: list[int]) -> float:
        """Return the CPU seconds of the program so far. They never decrease."""
        published = isinstance(self._clock, PublishedClock)
        used = self._tree.cpu_s(processes) if published else self._clock.now_s()
        self.cpu_s = max(self.cpu_s, used)
        if isinstance(self._clock, PublishedClock):
            self._clock.publish(self.cpu_s, self._listed_ns)
        return self.cpu_s

    def _extended_deadline(self) -> float:
        """Return the new deadline: time without a CPU does not count, within reason.

        Waiting that its own processes cause does count: at most the time that others used is
        subtracted, and no time in which a CPU was idle.
        """
        wall = self._limits.wall_s
        processes = self._processes()
        keeper_s = time.process_time() - self._keeper_s  # the program can make it work
        busy_s = self._machine.busy_s() - (self._busy_s or 0.0)
        others_s = busy_s - keeper_s - self._used_s(processes)
        without_idle_s = self.elapsed - self._looked_s - (self._machine.idle_s() - self._idle_s)
        waited = max(0.0, min(self._tree.waiting_s(processes), others_s, without_idle_s))
        if self.elapsed - waited < wall and self.elapsed < PATIENCE * wall:
            return wall + waited + FIRST_LOOK_S
        self.stopped = "wall"
        if waited > STARVED * wall:
            self.pressure = "cpu"
        return wall
