"""Notice that a process and all its descendants only wait."""

from __future__ import annotations

import time
from collections.abc import Callable

from assay.sandbox.inside.isolation.machine import work_of

WORKING = 0.1  # of a core: what is below this, and has nothing to run, is dozing


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
