"""Notice that a process and all its descendants work too long."""

from __future__ import annotations

import contextlib
import os

LOOK_EVERY_S = 1.0
TICKS = os.sysconf("SC_CLK_TCK")
RUNNABLE = "R"  # also while a busy machine lets it wait for a core


class Busy:
    """Raise ``error`` when the processes below ``pid`` have used ``cpu_s`` since the first look."""

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
        used = sum(map(int, _fields(f"/proc/{pid}/stat")[11:15])) / TICKS
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
