"""Read the whole machine's figures, opened while its /proc is accessible."""

from __future__ import annotations

import os

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
FLOOR_PART, FLOOR_MOST = 0.03, 1 << 30  # of the memory: below this everything ends


class Machine:
    """Measure what programs cannot influence except by using the machine."""

    def __init__(self) -> None:
        self._stat = os.open("/proc/stat", os.O_RDONLY)
        self._meminfo = os.open("/proc/meminfo", os.O_RDONLY)
        memory = self._memory()
        self.floor = min(FLOOR_MOST, int(FLOOR_PART * memory.get(b"MemTotal:", 0)))

    def busy_s(self) -> float:
        """Return the CPU seconds that were used by all processes since the start."""
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(
            int, os.pread(self._stat, 512, 0).split(None, 9)[1:9]
        )
        return (user + nice + system + irq + softirq + steal) * TICK_S

    def idle_s(self) -> float:
        """Return the seconds in which a CPU was idle, summed over all CPUs."""
        return sum(map(int, os.pread(self._stat, 512, 0).split(None, 6)[4:6])) * TICK_S

    def free_bytes(self) -> int:
        """Return the memory that is left for programs."""
        return self._memory().get(b"MemAvailable:", 1 << 62)

    def _memory(self) -> dict[bytes, int]:
        lines = (line.split() for line in os.pread(self._meminfo, 512, 0).splitlines())
        return {words[0]: int(words[1]) << 10 for words in lines if len(words) == 3}
