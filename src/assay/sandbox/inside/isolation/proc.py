"""Mount /proc for programs whose environment allows it: own processes, machine figures."""

from __future__ import annotations

import os

from . import kernel
from .kernel import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID

# What psutil reads: processors, memory and load. Nothing about other processes.
FIGURES = ("cpuinfo", "loadavg", "meminfo", "stat", "uptime")
TARGET = "/proc"
FLAGS = MS_NOSUID | MS_NODEV | MS_NOEXEC


def mount(target: str, *, whole: bool) -> None:
    """Mount /proc in a folder of the future root, for the keeper, which watches the processes.

    Without ``whole``, the machine's figures are left out. In a user namespace the kernel allows a
    whole /proc for programs only where one is visible already.
    """
    kernel.mount("proc", target, "proc", FLAGS, "" if whole else "subset=pid")


def mount_for_program() -> None:
    """Mount /proc in the pid namespace of a program. Its first process is not shown."""
    kernel.mount("proc", TARGET, "proc", FLAGS, "hidepid=2")
    cover_all_but_figures(TARGET)


def cover_all_but_figures(target: str) -> None:
    """Hide all of a /proc except processes and the machine's figures."""
    for entry in os.scandir(target):
        if entry.name.isdecimal() or entry.name in FIGURES or entry.is_symlink():
            continue
        if entry.is_dir():
            kernel.mount("tmpfs", entry.path, "tmpfs", FLAGS, "size=4k,nr_inodes=1,mode=555")
        else:
            kernel.mount(os.devnull, entry.path, "", MS_BIND)
            covered = kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NODEV
            kernel.set_mount_attributes(entry.path, covered, recursive=False)
