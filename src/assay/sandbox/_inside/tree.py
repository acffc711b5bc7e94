"""What a running process tree uses, read from /proc."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGESIZE")


def everyone_else() -> list[int]:
    """All processes of this pid namespace but pid 1."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and name != "1"]


def descendants() -> list[int]:
    """All processes below this one, those included that it adopted."""
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
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


def processes_of(uid: int) -> int:
    """How many processes this user has on the machine."""
    count = 0
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            count += name.isdecimal() and os.stat(f"/proc/{name}").st_uid == uid
    return count


def cpu_s(pids: Iterable[int]) -> float:
    """CPU seconds of these processes and of the children they have waited for."""
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
    """Memory in use. Shared pages are told apart only near the limit, where it matters."""
    pids = list(pids)
    rough = sum(int(fields[1]) for pid in pids if (fields := _read(f"/proc/{pid}/statm").split()))
    if rough * PAGE <= limit:
        return rough * PAGE
    return sum(_proportional(pid) for pid in pids)


def _proportional(pid: int) -> int:
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:  # it has just ended
        return ""
