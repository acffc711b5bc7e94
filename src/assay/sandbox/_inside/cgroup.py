"""A memory limit for whole process trees, where cgroups (version 1) can be written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

MEMORY = "/sys/fs/cgroup/memory"


class TreeLimit:
    """A cgroup that programs enter; opened before privileges are given up."""

    def __init__(self, memory_mb: int) -> None:
        parent = f"{MEMORY}{_own_group()}".rstrip("/")
        _remove_leftovers(parent)
        self._name = f"assay-{os.getpid()}"
        folder = f"{parent}/{self._name}"
        os.mkdir(folder)
        _write(f"{folder}/memory.limit_in_bytes", memory_mb << 20)
        with contextlib.suppress(OSError):  # no swap accounting: no swap to limit
            _write(f"{folder}/memory.memsw.limit_in_bytes", memory_mb << 20)
        self._entry = os.open(f"{folder}/cgroup.procs", os.O_WRONLY)
        self._peak = os.open(f"{folder}/memory.max_usage_in_bytes", os.O_RDWR)
        self._oom = os.open(f"{folder}/memory.oom_control", os.O_RDONLY)
        self._parent = os.open(parent, os.O_RDONLY)

    def enter(self) -> None:
        """Called by a program's process about itself."""
        os.write(self._entry, b"0")

    def reset(self) -> None:
        os.pwrite(self._peak, b"0", 0)

    def peak_bytes(self) -> int:
        return int(os.pread(self._peak, 32, 0))

    def kills(self) -> int:
        """How often a process was killed for lack of memory, ever."""
        return _kills(self._oom)

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            os.rmdir(self._name, dir_fd=self._parent)


def own_kills() -> Callable[[], int]:
    """How often a process of this container was killed for lack of memory, ever."""
    for path in ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events"):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY)
            return lambda: _kills(descriptor)
    return lambda: 0


def _kills(descriptor: int) -> int:
    words = os.pread(descriptor, 256, 0).split()
    return int(words[words.index(b"oom_kill") + 1]) if b"oom_kill" in words else 0


def _own_group() -> str:
    with open("/proc/self/cgroup") as lines:
        for line in lines:
            _, controllers, path = line.strip().split(":", 2)
            if "memory" in controllers.split(","):
                return path
    raise OSError("no memory cgroup")


def _remove_leftovers(path: str) -> None:
    """Of workers that were killed before they could clean up."""
    for name in os.listdir(path):
        if name.startswith("assay-") and not os.path.exists(f"/proc/{name[6:]}"):
            with contextlib.suppress(OSError):
                os.rmdir(f"{path}/{name}")


def _write(path: str, value: int) -> None:
    with open(path, "w") as file:
        file.write(str(value))
