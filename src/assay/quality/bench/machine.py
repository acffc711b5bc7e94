"""What a measurement was made on."""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path

from assay import __version__
from assay.machine import usable_cores


def machine() -> dict[str, object]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "assay": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu": _cpu(),
        "cpus": usable_cores(),
        "memory_mb": memory >> 20,
    }


def _cpu() -> str:
    """Its name, where the kernel tells."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor()
