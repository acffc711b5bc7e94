"""Watch a running command until it ends or exceeds a limit."""

from __future__ import annotations

import os
import select
import time

from inside.isolation.cgroup import TreeLimit
from inside.isolation.machine import Machine
from inside.isolation.tree import Tree

from .messages import SCRATCH, Settings

LOOK_EVERY_S = 0.05
PIECE, TAIL = 1 << 16, 4096
MACHINE_FLOOR_MB = 512  # some kernel memory is in no process's account: the last line of defence


class Watch:
    """The end of the command's stderr, and the name of the limit that it exceeded.

    Called by the supervisor, whose ``/proc`` is the command's own once that has started.
    """

    def __init__(self, settings: Settings, limit: TreeLimit | None, machine: Machine) -> None:
        self._settings = settings
        self._limit = limit
        self._machine = machine
        self._cpu_s: dict[int, float] = {}  # by process; those that have ended stay
        self._begun = False
        self.refusal = b""
        self.tail = b""
        self.stopped = ""

    def run(self, process: int, stderr: int, refusal: int, harness: int) -> None:
        """Return when the command has ended or is to be killed.

        ``process`` is a pidfd. ``refusal`` closes when the command begins, ``harness`` when the
        harness no longer waits for the command.
        """
        poll = select.poll()
        for descriptor in (process, stderr, refusal):
            poll.register(descriptor, select.POLLIN)
        poll.register(harness, 0)
        deadline = time.monotonic() + self._settings.limits.wall_s
        next_look = 0.0
        while not self.stopped:
            for descriptor, _ in poll.poll(LOOK_EVERY_S * 1000):
                if descriptor == harness:
                    self.stopped = "harness"
                    return
                if descriptor == process:
                    return
                piece = os.read(descriptor, PIECE)
                if not piece:
                    poll.unregister(descriptor)
                    self._begun = self._begun or descriptor == refusal
                elif descriptor == refusal:
                    self.refusal += piece
                else:
                    self.tail = (self.tail + piece)[-TAIL:]
            now = time.monotonic()
            if now > deadline:
                self.stopped = "wall"
            elif self._begun and now > next_look:
                next_look = now + LOOK_EVERY_S
                self.stopped = self._exceeded()

    def finish(self, stderr: int, refusal: int) -> None:
        """Read the remaining output. All writers have ended."""
        while piece := os.read(refusal, PIECE):
            self.refusal += piece
        while piece := os.read(stderr, PIECE):
            self.tail = (self.tail + piece)[-TAIL:]

    def _exceeded(self) -> str:
        tree = Tree()
        try:
            return self._exceeded_by(tree)
        finally:
            os.close(tree.proc)

    def _exceeded_by(self, tree: Tree) -> str:
        pids = tree.all_processes()
        if self._cpu_used_s(tree, pids) > self._settings.limits.cpu_s:
            return "cpu"
        limit = self._settings.limits.memory_mb << 20
        if self._limit is None and tree.memory_bytes(pids, limit) + _files_bytes() > limit:
            return "memory"
        if self._machine.free_bytes() < MACHINE_FLOOR_MB << 20:
            return "machine"
        return ""

    def _cpu_used_s(self, tree: Tree, pids: list[int]) -> float:
        """Return the CPU seconds used so far.

        Without a cgroup, children that nobody waited for and that no look has seen are not counted.
        The wall limit bounds these.
        """
        if self._limit is not None:
            return float(self._limit.clock.now_s())
        for pid in pids:
            used = tree.own_cpu_s(pid)
            self._cpu_s[pid] = max(used, self._cpu_s.get(pid, 0.0))
        return sum(self._cpu_s.values())


def _files_bytes() -> int:
    """Return the memory that files in the scratch folder take."""
    room = os.statvfs(SCRATCH)
    return (room.f_blocks - room.f_bfree) * room.f_frsize
