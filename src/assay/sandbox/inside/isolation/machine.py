"""Read the machine's figures, opened while its /proc is accessible.

Times are those of the cores that this process may use, because a process that is bound to some of
them waits for these alone.
"""

from __future__ import annotations

import os

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
STAT_BYTES = 1 << 17  # of the lines about up to 1,024 cores
FLOOR_PART, FLOOR_MOST = 0.03, 1 << 30  # of the memory: below this everything ends


class Machine:
    """Measure what programs cannot influence except by using the machine."""

    def __init__(self) -> None:
        self._stat = os.open("/proc/stat", os.O_RDONLY)
        self._meminfo = os.open("/proc/meminfo", os.O_RDONLY)
        own = os.sched_getaffinity(0)
        cores = {int(line.split()[0][3:]) for line in self._lines()[1:]}
        # The first line is the sum, which is shorter to read.
        self._cores = {b"cpu%d" % core for core in own} if cores - own else {b"cpu"}
        memory = self._memory()
        self.floor = min(FLOOR_MOST, int(FLOOR_PART * memory.get(b"MemTotal:", 0)))

    def busy_s(self) -> float:
        """Return the CPU seconds that were used by all processes since the start."""
        user, nice, system, _idle, _iowait, irq, softirq, steal = self._ticks()
        return (user + nice + system + irq + softirq + steal) * TICK_S

    def idle_s(self) -> float:
        """Return the seconds in which a CPU was idle, summed over the CPUs."""
        return sum(self._ticks()[3:5]) * TICK_S

    def free_bytes(self) -> int:
        """Return the memory that is left for programs."""
        return self._memory().get(b"MemAvailable:", 1 << 62)

    def _ticks(self) -> list[int]:
        """Return the first eight figures of the kernel, summed over the cores."""
        if self._cores == {b"cpu"}:
            return list(map(int, os.pread(self._stat, 512, 0).split(None, 9)[1:9]))
        rows = [line.split() for line in self._lines()]
        own = [list(map(int, row[1:9])) for row in rows if row[0] in self._cores]
        return [sum(column) for column in zip(*own, strict=True)]

    def _lines(self) -> list[bytes]:
        """Return the lines about all cores together and about each."""
        text = os.pread(self._stat, STAT_BYTES, 0)
        return [line for line in text.splitlines() if line.startswith(b"cpu")]

    def _memory(self) -> dict[bytes, int]:
        lines = (line.split() for line in os.pread(self._meminfo, 512, 0).splitlines())
        return {words[0]: int(words[1]) << 10 for words in lines if len(words) == 3}
