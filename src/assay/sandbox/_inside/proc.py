"""The program's /proc: its own processes and, where allowed, the machine's figures."""

from __future__ import annotations

import os

from . import kernel
from .kernel import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID

# How many processors, how much memory, how busy: what psutil reads. Nothing of other processes.
FIGURES = ("cpuinfo", "loadavg", "meminfo", "stat", "uptime")
FLAGS = MS_NOSUID | MS_NODEV | MS_NOEXEC


def mount(target: str, *, with_figures: bool = False, options: str = "") -> None:
    """Mount on a folder of a root, in the pid namespace that it is to show."""
    if not with_figures:
        kernel.mount("proc", target, "proc", FLAGS, f"subset=pid{options}")
        return
    kernel.mount("proc", target, "proc", FLAGS, options.lstrip(","))
    for entry in os.scandir(target):
        if entry.name.isdecimal() or entry.name in FIGURES or entry.is_symlink():
            continue
        if entry.is_dir():
            kernel.mount("tmpfs", entry.path, "tmpfs", FLAGS, "size=4k,nr_inodes=1,mode=555")
        else:
            kernel.mount(os.devnull, entry.path, "", MS_BIND)
            kernel.set_mount_attributes(entry.path, kernel.MOUNT_ATTR_NODEV, recursive=False)


def mount_for_program(*, with_figures: bool) -> None:
    """Mount over the worker's own; the namespace's first process does not show."""
    mount("/proc", with_figures=with_figures, options=",hidepid=2")
