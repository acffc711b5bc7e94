"""The CPU time of a program, read from a file that the kernel or the keeper writes."""

from __future__ import annotations

import os
import struct

# To the oracle, with a channel and a clock: the clock's kind and start, the limit of one call.
TURN = struct.Struct("=cdd")
NANOSECONDS, CPU_STAT = b"n", b"c"  # what the file holds: a number, or cpu.stat of cgroup version 2


class Clock:
    """Seconds of CPU time since ``start`` of a file that only grows."""

    def __init__(self, descriptor: int, kind: bytes, start: float = 0.0) -> None:
        self.descriptor, self.kind, self.start = descriptor, kind, start

    def restart(self) -> None:
        self.start = self.total_s()

    def now_s(self) -> float:
        return self.total_s() - self.start

    def total_s(self) -> float:
        """Return what the file says."""
        text = os.pread(self.descriptor, 1024, 0)
        return int(text) / 1e9 if self.kind == NANOSECONDS else int(text.split(None, 2)[1]) / 1e6


class PublishedClock(Clock):
    """Publish the CPU time that the keeper has seen, for tiers without a cgroup."""

    def __init__(self) -> None:
        super().__init__(os.memfd_create("clock"), NANOSECONDS)
        self.publish(0.0)

    def publish(self, seconds: float) -> None:
        os.pwrite(self.descriptor, b"%020d" % (seconds * 1e9), 0)
