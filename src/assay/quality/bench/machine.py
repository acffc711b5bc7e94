"""Describe the machine that a measurement was made on."""

from __future__ import annotations

import contextlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path

from assay import __version__
from assay.work.machine import usable_cores


@dataclass(frozen=True, slots=True)
class MachineFacts:
    assay: str
    python: str
    platform: str
    machine: str
    cpu: str
    cpus: int
    memory_mb: int


def describe_machine() -> MachineFacts:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return MachineFacts(
        assay=__version__,
        python=platform.python_version(),
        platform=platform.platform(),
        machine=platform.machine(),
        cpu=_cpu_name(),
        cpus=usable_cores(),
        memory_mb=memory >> 20,
    )


def _cpu_name() -> str:
    """Return the CPU's name as the kernel or Python knows it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor()
