"""Start, inspect and end programs, on the keeper's side."""

from __future__ import annotations

import _socket
import contextlib
import os
import signal
import sys

from ..isolation import cgroup, kernel, root
from ..isolation.tree import Tree
from . import sample
from .zygote import KILL

ANY_CHILD = 0x40000000  # __WALL: whatever signal a child ends with


class Place:
    """The keeper's side of a tier: it starts, ends and inspects programs."""

    scratch = root.SCRATCH

    def __init__(self, zygote: int, link: int, limit: cgroup.TreeLimit | None) -> None:
        self.zygote = zygote
        self._link = _socket.socket(fileno=link)
        self.limit = limit
        self.tree = Tree()
        self._peak_bytes = 0
        self.memory: cgroup.TreeLimit | cgroup.ContainerEvents | None = limit

    def start(self, kind: bytes, descriptors: list[int]) -> None:
        """Make the zygote fork a process that gets these descriptors."""
        numbers = b"".join(number.to_bytes(4, sys.byteorder) for number in descriptors)
        passed = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)]
        self._link.sendmsg([kind], passed)

    def end(self, program: int) -> tuple[int, float]:
        """Kill all processes of a program.

        Return its wait status and the CPU seconds of those ended.
        """
        raise NotImplementedError

    def peak_bytes(self) -> int:
        """Return the most memory that the last program used, as far as known."""
        return self.limit.peak_bytes() if self.limit else self._peak_bytes

    def processes(self, most: int) -> list[int]:
        """Return the pids of the program's live processes, or a part if there are too many."""
        raise NotImplementedError

    def sockets(self, processes: list[int]) -> int:
        """Return about how many sockets the program has. No process shows their memory."""
        raise NotImplementedError

    def clean_up(self) -> None:
        """Remove what the program left."""


class Namespaces(Place):
    """A pid namespace for each program, which ends with its first process."""

    def __init__(
        self, zygote: int, link: int, limit: cgroup.TreeLimit | None, files_mb: int
    ) -> None:
        super().__init__(zygote, link, limit)
        # A program's init shares this process's memory, so a signal handler must never run in it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        self._init = kernel.NamespaceInit(self.tree.proc)
        self._first = 0
        self._files_mb = files_mb
        self._clean = root.scratch_state()

    def start(self, kind: bytes, descriptors: list[int]) -> None:
        self._first, namespace = self._init.start()
        try:
            super().start(kind, [namespace, *descriptors])
        finally:
            os.close(namespace)

    def end(self, program: int) -> tuple[int, float]:
        os.kill(self._first, signal.SIGKILL)
        status, cpu_s = 0, 0.0
        while True:
            pid, ended, used = os.wait4(-1, ANY_CHILD)
            cpu_s += used.ru_utime + used.ru_stime
            if pid == program:
                status, self._peak_bytes = ended, used.ru_maxrss * 1024
            if pid == self.zygote:
                raise EOFError("the fork server ended")
            if pid == self._first:
                return status, cpu_s

    def processes(self, most: int) -> list[int]:  # noqa: ARG002 - the kernel allows no more
        ours = {1, self.zygote, self._first}
        return [pid for pid in self.tree.all_processes() if pid not in ours]

    def sockets(self, processes: list[int]) -> int:  # noqa: ARG002 - also those nobody holds
        return self.tree.sockets_of_namespace()

    def clean_up(self) -> None:
        if root.scratch_state() != self._clean:
            root.renew_scratch(self._files_mb)
            self._clean = root.scratch_state()


class Landlocked(Place):
    """Programs in the host's namespaces. They see the host's system folders, read-only."""

    def __init__(
        self, zygote: int, link: int, limit: cgroup.TreeLimit | None, scratch: str
    ) -> None:
        super().__init__(zygote, link, limit)
        self.scratch = scratch
        self._clean = self._state()

    def end(self, program: int) -> tuple[int, float]:
        self._link.send(KILL)  # reaches all that the zygote has forked, and nothing else
        self._link.recv(1)
        status, cpu_s = 0, 0.0
        while True:
            alone = self.tree.children() == [self.zygote]
            pid, ended, used = os.wait4(-1, ANY_CHILD | (os.WNOHANG if alone else 0))
            if pid == 0:
                return status, cpu_s
            if pid == self.zygote:
                raise EOFError("the fork server ended")
            cpu_s += used.ru_utime + used.ru_stime
            if pid == program:
                status, self._peak_bytes = ended, used.ru_maxrss * 1024

    def processes(self, most: int) -> list[int]:
        return [pid for pid in self.tree.descendants(most + 1) if pid != self.zygote]

    def sockets(self, processes: list[int]) -> int:
        return self.tree.open_files(processes, sample.OPEN_FILES)

    def clean_up(self) -> None:
        # Times alone are not enough: before Linux 6.13 they are those of the last tick.
        if self._state() != self._clean or os.listdir(self.scratch):
            _empty(self.scratch)
            self._clean = self._state()

    def _state(self) -> object:
        status = os.stat(self.scratch)
        return status.st_mode, status.st_ctime_ns


def remove(folder: str) -> None:
    with contextlib.suppress(OSError):
        _empty(folder)
        os.rmdir(folder)


def _empty(folder: str) -> None:
    """Delete everything in a folder, however deep. Deep folders are first moved to the top."""
    os.chmod(folder, 0o700)
    for name in os.listxattr(folder):
        os.removexattr(folder, name)
    number = 0
    while entries := list(os.scandir(folder)):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
                continue
            os.chmod(entry.path, 0o700)
            for inner in list(os.scandir(entry.path)):
                number += 1
                os.rename(inner.path, f"{folder}/.{number}.deleted")
            os.rmdir(entry.path)
