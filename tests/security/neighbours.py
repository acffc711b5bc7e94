"""Processes beside programs, to whom the kernel's ticks do wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

CPU = min(os.sched_getaffinity(0))
PINNED = f"import os; os.sched_setaffinity(0, {{{CPU}}})\n"
NAPPING = """
import time
end = time.monotonic() + 120
while time.monotonic() < end:
    busy = time.monotonic() + 0.0023
    while time.monotonic() < busy: pass
    time.sleep(0.0012)
"""


@contextmanager
def napping_neighbour() -> Iterator[None]:
    """Run a process on ``CPU`` that works and naps in turns, so that ticks hit whoever is there."""
    neighbour = subprocess.Popen([sys.executable, "-c", PINNED + NAPPING])
    try:
        yield
    finally:
        neighbour.kill()
        neighbour.wait()
