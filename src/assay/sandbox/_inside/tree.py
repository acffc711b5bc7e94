"""What a running process tree uses, read from /proc."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGESIZE")
USUAL_FILES = 16


def all_processes() -> list[int]:
    """Return all processes that /proc shows."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def children() -> list[int]:
    """Return the processes that this one has to wait for."""
    return sorted(_children(os.getpid()))


def descendants(most: int) -> list[int]:
    """Return the processes below this one, those included that it adopted; ``most`` and a few."""
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting and len(found) <= most:
        for child in _children(waiting.pop()):
            found.append(child)
            waiting.append(child)
    return found


def _children(pid: int) -> Iterator[int]:
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            yield from map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    except OSError:
        return


def threads(pids: Iterable[int]) -> int:
    """Count the threads of these processes."""
    count = 0
    for pid in pids:
        fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        count += int(fields[17]) if fields else 0
    return count


def threads_of(uid: int) -> int:
    """Count the threads that this user has on the machine."""
    ours = []
    for pid in all_processes():
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{pid}").st_uid == uid:
                ours.append(pid)
    return threads(ours)


def open_files(pids: Iterable[int], most: int) -> int:
    """Count the descriptors of these processes beyond what every program has."""
    count = 0
    for pid in pids:
        try:
            count += max(0, len(os.listdir(f"/proc/{pid}/fd")) - USUAL_FILES)
        except FileNotFoundError:
            continue  # it has just ended
        except OSError:  # it does not let us look
            count += most
    return count


def sockets_of_namespace() -> int:
    """Count the sockets of this network namespace, accepted or not."""
    for line in _read("/proc/self/net/sockstat").splitlines():
        if line.startswith("sockets: used "):
            return int(line.split()[2])
    return 0


def cpu_s(pids: Iterable[int]) -> float:
    """Return the CPU seconds of these processes and of the children they have waited for."""
    total = 0
    for pid in pids:
        fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        total += sum(map(int, fields[11:15]))
    return total * TICK_S


def waiting_s(pids: Iterable[int]) -> float:
    """Seconds these processes were ready to run but had no CPU."""
    total = 0
    for pid in pids:
        fields = _read(f"/proc/{pid}/schedstat").split()
        total += int(fields[1]) if len(fields) > 1 else 0
    return total / 1e9


def memory_bytes(pids: Iterable[int], limit: int) -> int:
    """Return the memory in use. Shared pages are told apart only near the limit."""
    resident = {pid: int(fields[1]) * PAGE for pid in pids if (fields := _statm(pid))}
    rough = sum(resident.values())
    if rough <= limit:
        return rough
    return sum(_proportional(pid, rss) for pid, rss in resident.items())


def _statm(pid: int) -> list[str]:
    return _read(f"/proc/{pid}/statm").split()


def _proportional(pid: int, otherwise: int) -> int:
    """Return a process's share; all of its memory if it does not let us look."""
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return otherwise


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:  # it has just ended
        return ""
