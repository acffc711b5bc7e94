"""Read the CPU time of a program from a file that the kernel or the keeper writes.

All of it is the scheduler's own count, in nanoseconds. The kernel's limits and interval timers
(RLIMIT_CPU, ITIMER_PROF) count ticks instead: the process that runs during a tick is charged for
all of it. With busy neighbours that was 0.4 to 1.6 times the time used.
"""

from __future__ import annotations

import os
import struct
import time

# Sent to the oracle with a channel and a clock: the clock's kind and start, the limits of the
# whole program and of one call.
TURN = struct.Struct("=cddd")
# What the file holds: a number, cpu.stat of cgroup version 2, or what the keeper publishes.
NANOSECONDS, CPU_STAT, PUBLISHED = b"n", b"c", b"p"
USED_AND_WHEN = struct.Struct("=qq")  # nanoseconds; the second of time.monotonic_ns
FOR_EVER = (1 << 63) - 1
CPUS = min(8, len(os.sched_getaffinity(0)))  # that a program uses at once, as far as that matters
SETTLE_S, LOOK_AGAIN_S = 2.0, 0.002


class Clock:
    """CPU seconds since ``start``, from a file whose value only grows."""

    def __init__(self, descriptor: int, kind: bytes, start: float = 0.0) -> None:
        self.descriptor, self.kind, self.start = descriptor, kind, start

    def restart(self) -> None:
        self.start = self.total_s()

    def now_s(self) -> float:
        return self.total_s() - self.start

    def total_s(self) -> float:
        """Return the CPU seconds in the file."""
        text = os.pread(self.descriptor, 1024, 0)
        if self.kind == PUBLISHED:
            return float(USED_AND_WHEN.unpack(text)[0] / 1e9)
        return int(text) / 1e9 if self.kind == NANOSECONDS else int(text.split(None, 2)[1]) / 1e6

    def lag_s(self) -> float:
        """Return how old the file is. Call this before reading the file."""
        return max(0.0, (time.monotonic_ns() - self._seen_ns()) / 1e9)

    def settle(self) -> None:
        """Wait until the file includes all that has been used by now."""
        now = time.monotonic_ns()
        until = now + SETTLE_S * 1e9  # the keeper may be gone
        while self._seen_ns() < now and time.monotonic_ns() < until:
            time.sleep(LOOK_AGAIN_S)

    def _seen_ns(self) -> int:
        if self.kind != PUBLISHED:
            return FOR_EVER
        return int(USED_AND_WHEN.unpack(os.pread(self.descriptor, USED_AND_WHEN.size, 0))[1])


class PublishedClock(Clock):
    """The CPU time that the keeper has seen, published for tiers without a cgroup."""

    def __init__(self) -> None:
        super().__init__(os.memfd_create("clock"), PUBLISHED)
        self.publish(0.0, 0)

    def publish(self, seconds: float, seen_ns: int) -> None:
        """Write what was used at ``seen_ns`` of ``time.monotonic_ns``, or later."""
        os.pwrite(self.descriptor, USED_AND_WHEN.pack(int(seconds * 1e9), seen_ns), 0)
