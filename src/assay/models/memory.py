"""Measure the free memory of this machine."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def free_memory() -> int:
    """Return the free memory in bytes. The kernel's file cache counts as free where reported."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
