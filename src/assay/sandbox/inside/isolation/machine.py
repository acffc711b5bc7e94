"""Read the machine's figures, and notice that a process tree works too long.

Figures are opened while /proc is accessible. Times are those of the cores that this process may
use, because a process that is bound to some of them waits for these alone.
"""

from __future__ import annotations

import contextlib
import os

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
STAT_BYTES = 1 << 17  # of the lines about up to 1,024 cores
FLOOR_PART, FLOOR_MOST = 0.03, 1 << 30  # of the memory: below this everything ends
LOOK_EVERY_S = 1.0
RUNNABLE = "R"  # also while a busy machine lets it wait for a core


class Machine:
    """Figures that programs cannot influence except by using the machine."""

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


class Busy:
    """A look that raises ``error`` once processes below ``pid`` used ``cpu_s`` since the first."""

    def __init__(self, pid: int, cpu_s: float, error: Exception) -> None:
        self._pid, self._cpu_s, self._error = pid, cpu_s, error
        self._before: float | None = None

    def look(self) -> bool:
        """Return whether they work. Then they reach their limit, however busy the machine is."""
        used, runnable = work_of(self._pid)
        if self._before is None:
            self._before = used
        if used - self._before > self._cpu_s:
            raise self._error
        return runnable


def work_of(pid: int) -> tuple[float, bool]:
    """Return the CPU seconds of a process tree, and whether any of its processes can run now."""
    used, runnable = 0.0, False
    with contextlib.suppress(OSError, ValueError):
        used = sum(map(int, _fields(f"/proc/{pid}/stat")[11:15])) * TICK_S
        for task in os.listdir(f"/proc/{pid}/task"):
            runnable |= _fields(f"/proc/{pid}/task/{task}/stat")[0] == RUNNABLE
            for child in _read(f"/proc/{pid}/task/{task}/children").split():
                more, busy = work_of(int(child))
                used, runnable = used + more, runnable or busy
    return used, runnable


def _fields(stat: str) -> list[str]:
    """Return the fields after the name. The state is first; the CPU times start at index 11."""
    return _read(stat).rpartition(")")[2].split()


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()
