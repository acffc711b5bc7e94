"""Watch a running command until it ends or exceeds a limit."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path
from typing import Any

from .cgroup import Group
from .root import SCRATCH

LOOK_EVERY_S = 0.05
TICK_S, PAGE = 1 / os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGESIZE")
PIECE, TAIL = 1 << 16, 4096
MACHINE_FLOOR_MB = 512  # some kernel memory is in no process's account: the last line of defence


class Watch:
    """Keep the end of the command's stderr, and the name of the limit that it exceeded.

    Called by the supervisor, whose ``/proc`` is the command's own once that has begun.
    """

    def __init__(self, settings: dict[str, Any], group: Group | None, meminfo: int) -> None:
        self._settings = settings
        self._group = group
        self._meminfo = meminfo
        self._cpu_s: dict[int, float] = {}  # by process; those that have ended stay
        self._begun = False
        self.refusal = b""
        self.tail = b""
        self.stopped = ""

    def run(self, process: int, stderr: int, refusal: int, harness: int) -> None:
        """Return when the command has ended or is to be killed.

        ``process`` is a pidfd; ``refusal`` closes when the command begins, ``harness`` when
        nobody waits for the command any more.
        """
        poll = select.poll()
        for descriptor in (process, stderr, refusal):
            poll.register(descriptor, select.POLLIN)
        poll.register(harness, 0)
        deadline = time.monotonic() + self._settings["wall_s"]
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
        """Read what is left; all that could write has ended."""
        while piece := os.read(refusal, PIECE):
            self.refusal += piece
        while piece := os.read(stderr, PIECE):
            self.tail = (self.tail + piece)[-TAIL:]

    def _exceeded(self) -> str:
        pids = [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdecimal()]
        if self._cpu_used_s(pids) > self._settings["cpu_s"]:
            return "cpu"
        limit = self._settings["memory_mb"] << 20
        if self._group is None and _memory_bytes(pids, limit) > limit:
            return "memory"
        if _available_bytes(self._meminfo) < MACHINE_FLOOR_MB << 20:
            return "machine"
        return ""

    def _cpu_used_s(self, pids: list[int]) -> float:
        """Return the CPU seconds used so far.

        Without a group, children that nobody waited for and no look has met are not counted; the
        wall limit bounds these.
        """
        if self._group is not None:
            return self._group.cpu_s()
        for pid in pids:
            fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
            if len(fields) > 12:
                used = (int(fields[11]) + int(fields[12])) * TICK_S
                self._cpu_s[pid] = max(used, self._cpu_s.get(pid, 0.0))
        return sum(self._cpu_s.values())


def _memory_bytes(pids: list[int], limit: int) -> int:
    """Return the memory in use, files included. Shared pages count once only near the limit."""
    room = os.statvfs(SCRATCH)
    files = (room.f_blocks - room.f_bfree) * room.f_frsize
    resident = {pid: _resident_bytes(pid) for pid in pids}
    if files + sum(resident.values()) <= limit:
        return files + sum(resident.values())
    return files + sum(_proportional_bytes(pid, whole) for pid, whole in resident.items())


def _resident_bytes(pid: int) -> int:
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * PAGE if fields else 0


def _proportional_bytes(pid: int, resident: int) -> int:
    """Return the process's share; all of its memory where it hides how much it shares."""
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return resident


def _available_bytes(meminfo: int) -> int:
    words = os.pread(meminfo, 4096, 0).split()
    return int(words[words.index(b"MemAvailable:") + 1]) * 1024


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:  # it has just ended, or hides itself
        return ""
