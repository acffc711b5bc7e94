"""Limit whole process trees by cgroups of version 1 or 2, where they can be written."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Literal

from .clock import CPU_STAT, NANOSECONDS, Clock

Killer = Literal["", "own limit", "host"]
LARGEST_CHARGE = 4 << 20  # that the kernel makes at once
PREFIX = "assay-"
REMOVE_S = 2.0  # the kernel takes a moment to see that a cgroup is empty
HARNESS = f"{PREFIX}harness"  # where processes go that stand in the way of a subtree


class VersionOne:
    """Two cgroups for the zygote and all that it forks: their memory and CPU time."""

    name = "cgroup version 1"

    def __init__(self, memory_mb: int, processes: int) -> None:  # noqa: ARG002 - watched
        folders = [_make_folder(controller) for controller in ("memory", "cpuacct")]
        memory, cpu = folders
        limit = memory_mb << 20
        _write(f"{memory}/memory.limit_in_bytes", limit)
        with contextlib.suppress(OSError):  # no swap accounting: no swap to limit
            _write(f"{memory}/memory.memsw.limit_in_bytes", limit)
        self._entries = [os.open(f"{folder}/cgroup.procs", os.O_WRONLY) for folder in folders]
        self._peak = os.open(f"{memory}/memory.max_usage_in_bytes", os.O_RDWR)
        self._oom = os.open(f"{memory}/memory.oom_control", os.O_RDONLY)
        self._full, self._kills = limit - LARGEST_CHARGE, 0
        self.clock = Clock(os.open(f"{cpu}/cpuacct.usage", os.O_RDONLY), NANOSECONDS)
        self._folders = [_opened_parent(folder) for folder in folders]

    def enter(self) -> None:
        """Move the calling process into the cgroups. What it starts is in them too."""
        for entry in self._entries:
            os.write(entry, b"0")

    def restart(self) -> None:
        """Start measuring the next program."""
        os.pwrite(self._peak, b"0", 0)
        self.clock.restart()
        self._kills = _count(self._oom, b"oom_kill")

    def peak_bytes(self) -> int:
        return int(os.pread(self._peak, 32, 0))

    def killed_by(self) -> Killer:
        """Return the limit for which the kernel killed a process of the program."""
        if _count(self._oom, b"oom_kill") == self._kills:
            return ""
        # Not by failcnt, which newer kernels do not count.
        return "own limit" if self.peak_bytes() >= self._full else "host"

    def remove(self) -> None:
        """Remove the cgroups, once their processes have ended."""
        _remove(self._folders)


class VersionTwo:
    """A cgroup for the zygote and all that it forks: their memory, processes and CPU time."""

    name = "cgroup version 2"

    def __init__(self, memory_mb: int, processes: int) -> None:
        folder = f"{_subtree()}/{PREFIX}{os.getpid()}"
        os.mkdir(folder)
        self._parent = [_opened_parent(folder)]
        try:
            _write(f"{folder}/memory.max", memory_mb << 20)
            with contextlib.suppress(OSError):  # a kernel without swap
                _write(f"{folder}/memory.swap.max", 0)
            with contextlib.suppress(OSError):  # not delegated: counted per user, and watched
                _write(f"{folder}/pids.max", processes + 1)  # the zygote
            self._peak = os.open(f"{folder}/memory.peak", os.O_RDWR)
            self._events = os.open(f"{folder}/memory.events", os.O_RDONLY)
            self._before = 0, 0
            self.clock = Clock(os.open(f"{folder}/cpu.stat", os.O_RDONLY), CPU_STAT)
            self._entry = os.open(f"{folder}/cgroup.procs", os.O_WRONLY)
        except OSError:
            self.remove()
            raise

    def enter(self) -> None:
        os.write(self._entry, b"0")

    def restart(self) -> None:
        # Since Linux 6.12 a write starts a new peak. Before, it is the peak of all programs so far.
        with contextlib.suppress(OSError):
            os.pwrite(self._peak, b"reset", 0)
        self.clock.restart()
        self._before = self._kills_and_hits()

    def peak_bytes(self) -> int:
        return int(os.pread(self._peak, 32, 0))

    def killed_by(self) -> Killer:
        (kills_before, hits_before), (kills, hits) = self._before, self._kills_and_hits()
        if kills == kills_before:
            return ""
        return "own limit" if hits > hits_before else "host"

    def _kills_and_hits(self) -> tuple[int, int]:
        return _count(self._events, b"oom_kill"), _count(self._events, b"oom")

    def remove(self) -> None:
        _remove(self._parent)


TreeLimit = VersionOne | VersionTwo


def open_limit(memory_mb: int, processes: int) -> TreeLimit | None:
    """Return a new cgroup with these limits, or None if this user cannot create one."""
    kinds: tuple[type[TreeLimit], ...] = (VersionTwo, VersionOne)
    for kind in kinds:
        with contextlib.suppress(OSError):
            return kind(memory_mb, processes)
    return None


class ContainerEvents:
    """The memory events of the container around this process, which limits the programs."""

    def __init__(self, descriptor: int) -> None:
        self._events = descriptor
        self._kills = 0

    def restart(self) -> None:
        self._kills = _count(self._events, b"oom_kill")

    def killed_by(self) -> Killer:
        return "own limit" if _count(self._events, b"oom_kill") > self._kills else ""


def container_events() -> ContainerEvents | None:
    """Return the events of this container, or None if it does not show them."""
    for path in ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events"):
        with contextlib.suppress(OSError):
            return ContainerEvents(os.open(path, os.O_RDONLY))
    return None


def _count(descriptor: int, name: bytes) -> int:
    words = os.pread(descriptor, 256, 0).split()
    return int(words[words.index(name) + 1]) if name in words else 0


def _mount_point(kind: str, controller: str) -> str:
    """Return where a hierarchy is mounted. Raise OSError if it is not mounted."""
    with open("/proc/self/mountinfo") as lines:
        for line in lines:
            left, _, right = line.partition(" - ")
            found, _, options = right.split(" ", 2)
            if found == kind and (not controller or controller in options.strip().split(",")):
                return left.split()[4]
    raise OSError(f"no {controller or 'unified'} cgroup")


def _own_group(controller: str) -> str:
    """Return this process's path in a hierarchy of version 1, or in version 2 for ""."""
    with open("/proc/self/cgroup") as lines:
        for line in lines:
            _, controllers, path = line.strip().split(":", 2)
            if controller in controllers.split(","):
                return path.rstrip("/")
    raise OSError(f"no {controller} cgroup")


def _make_folder(controller: str) -> str:
    parent = _mount_point("cgroup", controller) + _own_group(controller)
    _remove_leftovers(parent)
    folder = f"{parent}/{PREFIX}{os.getpid()}"
    os.mkdir(folder)
    return folder


def _subtree() -> str:
    """Return the nearest folder above whose children have a memory controller.

    If there is none and this process's own cgroup was delegated to this user, make it such a
    folder. Its processes move into a child, because a cgroup has either processes or controlled
    children.
    """
    mounted = _mount_point("cgroup2", "")
    own = mounted + _own_group("")
    weaker = ""
    folder = own
    while True:
        controllers = _words(f"{folder}/cgroup.subtree_control")
        if "memory" in controllers and os.access(folder, os.W_OK):
            _remove_leftovers(folder)
            if "pids" in controllers:
                return folder
            weaker = weaker or folder
        if folder == mounted:
            break
        folder = os.path.dirname(folder)
    if weaker:
        return weaker
    controllers_here = [
        name for name in ("memory", "pids", "cpu") if name in _words(f"{own}/cgroup.controllers")
    ]
    if "memory" not in controllers_here:
        raise OSError("no memory controller")
    with contextlib.suppress(FileExistsError):
        os.mkdir(f"{own}/{HARNESS}")
    for process in _words(f"{own}/cgroup.procs"):
        with contextlib.suppress(ProcessLookupError):
            _write(f"{own}/{HARNESS}/cgroup.procs", int(process))
    _write(f"{own}/cgroup.subtree_control", " ".join(f"+{name}" for name in controllers_here))
    return own


def _words(path: str) -> list[str]:
    with open(path) as file:
        return file.read().split()


def _opened_parent(folder: str) -> tuple[int, str]:
    parent, name = os.path.split(folder)
    return os.open(parent, os.O_RDONLY), name


def _remove(folders: list[tuple[int, str]]) -> None:
    deadline = time.monotonic() + REMOVE_S
    for parent, name in folders:
        while time.monotonic() < deadline:
            try:
                os.rmdir(name, dir_fd=parent)
                break
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.01)


def _remove_leftovers(path: str) -> None:
    """Remove the cgroups of workers that were killed before they could clean up."""
    for name in os.listdir(path):
        pid = name.removeprefix(PREFIX)
        if name != pid and pid.isdecimal() and not os.path.exists(f"/proc/{pid}"):
            with contextlib.suppress(OSError):
                os.rmdir(f"{path}/{name}")


def _write(path: str, value: int | str) -> None:
    with open(path, "w") as file:
        file.write(str(value))
