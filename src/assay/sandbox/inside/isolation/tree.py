"""Read from /proc what a running process tree uses."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGESIZE")
USUAL_FILES = 16
ZOMBIE = "Z"
EXACT = 2  # CPUCLOCK_SCHED, of the clocks that a process has


def exact_cpu_s(pid: int) -> float:
    """Return the CPU seconds of one process without its children's, to the nanosecond.

    The pid is from the caller's own namespace, whatever /proc it has.
    """
    try:
        return time.clock_gettime(~pid << 3 | EXACT)
    except OSError:  # it has just ended
        return 0.0


class Tree:
    """Processes, read through a descriptor of /proc, which the programs' own root may lack."""

    def __init__(self) -> None:
        self.proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)

    def all_processes(self) -> list[int]:
        """Return all processes that this /proc shows."""
        return [int(name) for name in os.listdir(self.proc) if name.isdecimal()]

    def children(self) -> list[int]:
        """Return the processes that this one has to wait for."""
        return sorted(self._children("self"))

    def descendants(self, most: int) -> list[int]:
        """Return the processes below this one, adopted ones included: ``most`` and a few more."""
        pids: list[int] = []
        waiting = ["self"]
        while waiting and len(pids) <= most:
            for child in self._children(waiting.pop()):
                pids.append(child)
                waiting.append(str(child))
        return pids

    def threads(self, pids: Iterable[int]) -> int:
        """Count the threads of these processes."""
        return sum(int(fields[17]) for pid in pids if (fields := self._stat(pid)))

    def threads_of(self, uid: int) -> int:
        """Count the threads that this user has on the machine."""
        return self.threads(pid for pid in self.all_processes() if self._owner(pid) == uid)

    def open_files(self, pids: Iterable[int], most: int) -> int:
        """Count the descriptors of these processes beyond what every program has."""
        count = 0
        for pid in pids:
            try:
                count += max(0, len(self._names(f"{pid}/fd")) - USUAL_FILES)
            except FileNotFoundError:
                continue  # it has just ended
            except OSError:  # it has ended and nobody waited for it, or it cannot be inspected
                count += most if self._stat(pid)[:1] != [ZOMBIE] else 0
        return count

    def sockets_of_namespace(self) -> int:
        """Count the sockets of this network namespace, accepted or not."""
        for line in self._read("self/net/sockstat").splitlines():
            if line.startswith("sockets: used "):
                return int(line.split()[2])
        return 0

    def cpu_s(self, pids: Iterable[int]) -> float:
        """Return the CPU seconds of these processes and of the children they have waited for.

        The /proc must be that of the caller's own pid namespace. If parents come before their
        children in ``pids``, the sum is never too large: children that end meanwhile count the next
        time, and their sum is rounded down to ticks.
        """
        pids = list(pids)
        children_s = sum(sum(map(int, self._stat(pid)[13:15])) for pid in pids) * TICK_S
        return children_s + sum(map(exact_cpu_s, pids))

    def own_cpu_s(self, pid: int) -> float:
        """Return the CPU seconds of one process without its children's."""
        return sum(map(int, self._stat(pid)[11:13])) * TICK_S

    def waiting_s(self, pids: Iterable[int]) -> float:
        """Return the seconds that these processes were ready to run but had no CPU."""
        total = 0
        for pid in pids:
            fields = self._read(f"{pid}/schedstat").split()
            total += int(fields[1]) if len(fields) > 1 else 0
        return total / 1e9

    def memory_bytes(self, pids: Iterable[int], limit: int) -> int:
        """Return the memory in use. Shared pages are counted once only near the limit."""
        resident = {pid: self._resident(pid) for pid in pids}
        rough = sum(resident.values())
        if rough <= limit:
            return rough
        return sum(self._proportional(pid, rss) for pid, rss in resident.items())

    def _resident(self, pid: int) -> int:
        """Return a process's memory, even if its first thread has ended and others still run."""
        fields = self._read(f"{pid}/statm").split()
        if fields and fields[1] == "0" and self.threads([pid]) > 1:
            for thread in self._names_or_none(f"{pid}/task"):
                fields = self._read(f"{pid}/task/{thread}/statm").split()
                if fields and fields[1] != "0":
                    break
        return int(fields[1]) * PAGE if fields else 0

    def _proportional(self, pid: int, otherwise: int) -> int:
        """Return a process's share of memory, or all of its memory if it cannot be inspected."""
        for line in self._read(f"{pid}/smaps_rollup").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
        return otherwise

    def _children(self, process: str) -> Iterator[int]:
        try:
            for thread in self._names(f"{process}/task"):
                yield from map(int, self._read(f"{process}/task/{thread}/children").split())
        except OSError:
            return

    def _stat(self, pid: int) -> list[str]:
        """Return the fields after the name, or none if the process has ended."""
        return self._read(f"{pid}/stat").rpartition(")")[2].split()

    def _owner(self, pid: int) -> int:
        try:
            return os.stat(str(pid), dir_fd=self.proc).st_uid
        except OSError:
            return -1

    def _names(self, folder: str) -> list[str]:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.proc)
        try:
            return os.listdir(descriptor)
        finally:
            os.close(descriptor)

    def _names_or_none(self, folder: str) -> list[str]:
        try:
            return self._names(folder)
        except OSError:
            return []

    def _read(self, path: str) -> str:
        try:
            with open(os.open(path, os.O_RDONLY, dir_fd=self.proc), errors="replace") as file:
                return file.read()
        except OSError:  # it has just ended
            return ""
