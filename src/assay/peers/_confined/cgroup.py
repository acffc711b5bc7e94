"""A control group for the whole command, version 1 or 2, where one can be written."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

MOUNT = "/sys/fs/cgroup"
PREFIX = "assay-peer-"
REMOVE_S = 2.0  # the kernel takes a moment to see that a group is empty


class Group:
    """Limit the memory of a process and all it starts, and count their CPU time.

    Everything is opened at the start, while the host's files are in reach.
    """

    def __init__(self, folders: list[Path], cpu_file: str, cpu_unit_s: float) -> None:
        self._entries = [os.open(folder / "cgroup.procs", os.O_WRONLY) for folder in folders]
        self._cpu = os.open(folders[-1] / cpu_file, os.O_RDONLY)
        self._cpu_unit_s = cpu_unit_s
        self._parents = [os.open(folder.parent, os.O_RDONLY) for folder in folders]
        self._name = folders[0].name

    def add(self, pid: int) -> None:
        """Put a process that has no children yet into the group."""
        for entry in self._entries:
            os.write(entry, str(pid).encode())

    def cpu_s(self) -> float:
        """Return the CPU seconds of all processes that were ever in the group."""
        words = os.pread(self._cpu, 4096, 0).split()
        used = words[1] if words[0] == b"usage_usec" else words[0]
        return int(used) * self._cpu_unit_s

    def remove(self) -> None:
        """Remove the group once all its processes have ended."""
        deadline = time.monotonic() + REMOVE_S
        for parent in self._parents:
            while time.monotonic() < deadline:
                try:
                    os.rmdir(self._name, dir_fd=parent)
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.01)


def create_group(memory_mb: int) -> Group | None:
    """Return a new group with this memory limit, or None where none can be made."""
    for version in (_version_1, _version_2):
        with contextlib.suppress(OSError):
            return version(memory_mb)
    return None


def _version_1(memory_mb: int) -> Group:
    memory, cpu = (_new(Path(f"{MOUNT}/{name}{_own(name)}")) for name in ("memory", "cpuacct"))
    _write(memory / "memory.limit_in_bytes", memory_mb << 20)
    with contextlib.suppress(OSError):  # no swap accounting: no swap to limit
        _write(memory / "memory.memsw.limit_in_bytes", memory_mb << 20)
    return Group([memory, cpu], "cpuacct.usage", 1e-9)


def _version_2(memory_mb: int) -> Group:
    """Try the harness's own group (delegated to the user), then the root (for root)."""
    for path in dict.fromkeys((_own(""), "")):
        parent = Path(f"{MOUNT}{path}")
        with contextlib.suppress(OSError):  # busy, or not ours: it may be on already
            _write(parent / "cgroup.subtree_control", "+memory")
        with contextlib.suppress(OSError):
            folder = _new(parent)
            try:
                _write(folder / "memory.max", memory_mb << 20)
            except OSError:
                folder.rmdir()
                continue
            with contextlib.suppress(OSError):  # no swap
                _write(folder / "memory.swap.max", 0)
            return Group([folder], "cpu.stat", 1e-6)
    raise OSError("no control group can be made")


def _own(controller: str) -> str:
    """Return this process's group; the empty name stands for version 2."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path.rstrip("/")
    raise OSError(f"no control group of {controller or 'version 2'}")


def _new(parent: Path) -> Path:
    _remove_leftovers(parent)
    folder = parent / f"{PREFIX}{os.getpid()}"
    folder.mkdir()
    return folder


def _remove_leftovers(parent: Path) -> None:
    """Remove the groups of supervisors that were killed before they could."""
    for path in parent.glob(f"{PREFIX}*"):
        if not Path("/proc", path.name.removeprefix(PREFIX)).exists():
            with contextlib.suppress(OSError):
                path.rmdir()


def _write(path: Path, value: object) -> None:
    with path.open("r+") as file:  # never creates one
        file.write(str(value))
