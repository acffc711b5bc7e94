"""Notice that a process and all its descendants only wait, or work too long."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

LOOK_EVERY_S = 1.0
WORKING = 0.1  # of a core: what is below this, and has nothing to run, is dozing
TICKS = os.sysconf("SC_CLK_TCK")
RUNNABLE = "R"  # also while a busy machine lets it wait for a core


class Dozing:
    """Call ``tell`` once, when the processes below ``pid`` have recently done almost nothing."""

    def __init__(self, pid: int, tell: Callable[[], None]) -> None:
        self._pid = pid
        self._tell: Callable[[], None] | None = tell
        self._seen = (time.monotonic(), 0.0)

    def look(self) -> bool:
        if self._tell is None:
            return False
        before, used_before = self._seen
        used, runnable = work_of(self._pid)
        now, _ = self._seen = time.monotonic(), used
        # The first look has no earlier one to compare with.
        if used_before and not runnable and used - used_before < WORKING * (now - before):
            self._tell()
            self._tell = None
        return False


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
        used = sum(map(int, _fields(Path(f"/proc/{pid}/stat"))[11:15])) / TICKS
        for task in Path(f"/proc/{pid}/task").iterdir():
            runnable |= _fields(task / "stat")[0] == RUNNABLE
            for child in (task / "children").read_text().split():
                more, busy = work_of(int(child))
                used, runnable = used + more, runnable or busy
    return used, runnable


def _fields(stat: Path) -> list[str]:
    """Return the fields after the name. The state is first; the CPU times start at index 11."""
    return stat.read_text().rpartition(")")[2].split()
