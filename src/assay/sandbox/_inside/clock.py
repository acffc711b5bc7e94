"""The CPU time of a program, read outside of it from a file that the kernel writes."""

from __future__ import annotations

import os
import struct

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
# To the oracle, with a channel and a clock: the clock's kind and start, the limit of one call.
TURN = struct.Struct("=cdd")
# What the file is: a cgroup's total (version 1, 2), or the process's own line in /proc.
NANOSECONDS, CPU_STAT, PROCESS = b"n", b"c", b"p"


class Clock:
    """Seconds of CPU time since ``start`` of a file that only grows."""

    def __init__(self, descriptor: int, kind: bytes, start: float = 0.0) -> None:
        self.descriptor, self.kind, self.start = descriptor, kind, start

    def restart(self) -> None:
        self.start = self.total_s()

    def now_s(self) -> float:
        return self.total_s() - self.start

    def total_s(self) -> float:
        """Return what the file says; 0 if the process is gone."""
        try:
            text = os.pread(self.descriptor, 1024, 0)
        except OSError:
            return 0.0
        if self.kind == NANOSECONDS:
            return int(text) / 1e9
        if self.kind == CPU_STAT:
            return int(text.split(None, 2)[1]) / 1e6
        return sum(map(int, text.rpartition(b")")[2].split()[11:15])) * TICK_S
