"""Notices that a process and all it has started are waiting for something, not working."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

LOOK_EVERY_S = 1.0
WORKING = 0.1  # of a core: what is below this, and has nothing to run, is dozing
RUNNABLE = "R"  # also while a busy machine lets it wait for a core


class Dozing:
    """Calls ``tell``, once, when the processes below ``pid`` have done next to nothing lately."""

    def __init__(self, pid: int, tell: Callable[[], None]) -> None:
        self._pid = pid
        self._tell: Callable[[], None] | None = tell
        self._seen = (time.monotonic(), 0.0)

    def look(self) -> None:
        if self._tell is None:
            return
        before, used_before = self._seen
        used, runnable = _work(self._pid)
        now, _ = self._seen = time.monotonic(), used
        # The first look has nothing to compare with.
        if used_before and not runnable and used - used_before < WORKING * (now - before):
            self._tell()
            self._tell = None


def _work(pid: int) -> tuple[float, bool]:
    """CPU seconds of a process and its descendants, and whether any of them could run now."""
    ticks, runnable = 0, False
    below = 0.0
    with contextlib.suppress(OSError, ValueError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            # After the name: the state, then at 11 to 14 own and waited-for children's time.
            fields = (task / "stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
            runnable |= fields[0] == RUNNABLE
            for child in (task / "children").read_text().split():
                used, busy = _work(int(child))
                below, runnable = below + used, runnable or busy
    return ticks / os.sysconf("SC_CLK_TCK") + below, runnable
