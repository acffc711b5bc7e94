"""Load a judge service with good, bad and hostile programs, and check that nothing goes wrong.

    python benchmarks/soak.py [--requests 200000] [--hostile 0.02] [--hang-up 0.01] [--kill-every 5]
                              [--single] [--seconds 3600] [--wall-limit 5]

Some clients hang up after they have sent a request, and a worker is killed every few seconds. Fails
if a verdict is wrong or on another program, if memory or open files grow, if the server still holds
programs when all are answered, or if a process is left at the end. ``invalid`` is never a wrong
verdict, but there must be few of them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import json
import math
import os
import random
import signal
import statistics
import sys
import time
import urllib.request
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from http_load import Connection, resident_mb, running_server, wait_for

GROWTH, GROWTH_MB = 1.25, 40.0
TREE_GROWTH_MB = 512.0  # hostile programs have up to 128 MB each, while they run
GROWTH_FILES = 64  # besides connections
IDLE_S = 60.0  # for programs of clients that left to end
PR_SET_CHILD_SUBREAPER = 36
HELD = ("assay_queue_programs", "assay_running_programs", "assay_queue_bytes")
MOST_INVALID = 0.005  # of the programs, or as many as workers were killed three times over
LIMITS = {"cpu_s": 1.0, "memory_mb": 128, "processes": 16}
CODE = {"entry_point": "f", "code": "assert f(2) == 4\nassert f(-1) == -2\n"}
CASES = {"entry_point": "f", "cases": [{"arguments": [n], "expected": 2 * n} for n in range(5)]}
STDIN = {"stdin_cases": [{"input": "2\n", "output": "4\n"}, {"input": "5\n", "output": "10\n"}]}
GOOD, WRONG = "def f(x):\n    return 2 * x\n", "def f(x):\n    return x + 2\n"
GOOD_SCRIPT, WRONG_SCRIPT = "print(2 * int(input()))\n", "print(int(input()) + 2)\n"
HONEST = (
    (GOOD, CODE, "pass"), (GOOD, CASES, "pass"), (GOOD_SCRIPT, STDIN, "pass"),
    (WRONG, CODE, "fail"), (WRONG, CASES, "fail"), (WRONG_SCRIPT, STDIN, "fail"),
    ("def f(:", CODE, "fail"), ("raise ValueError", CASES, "fail"),
)  # fmt: skip
HOSTILE = (
    "import os\nos._exit(0)\n",
    "import sys\nsys.exit(0)\n",
    "import os\nwhile True:\n    os.fork()\n",
    "while True:\n    pass\n",
    "import time\ntime.sleep(60)\n",
    "x = []\nwhile True:\n    x.append('x' * (1 << 20))\n",
    "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n",
    "import os, signal\nos.kill(-1, signal.SIGKILL)\n",
    "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n",
    "while True:\n    print('x' * 10_000)\n",
    "import os\nfor n in range(3, 256):\n    try:\n        os.write(n, b'pass' * 100)\n"
    "    except OSError:\n        pass\n",
    "import os\nos.closerange(0, 256)\n",
    "import ctypes\nctypes.string_at(0)\n",
    "class A:\n    __eq__ = lambda *_: True\nf = lambda x: A()\n",
    "open('/tmp/x', 'w').write('x' * (1 << 30))\n",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SoakOptions:
    """Set how long and how hard a soak is."""

    requests: int = 200_000
    connections: int = 32
    hostile: float = 0.02
    hang_up: float = 0.01
    kill_every_s: float = 5.0
    workers: int = 0
    seed: int = 0
    sizes: tuple[int, ...] = (1, 1, 1, 4, 16)  # programs per request, each as likely
    seconds: float = 86_400.0  # after which no more requests are sent
    wall_s: float = 5.0  # of programs: those that sleep hold others up for as long


@dataclass(slots=True)
class Soak:
    """Hold what was seen."""

    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)  # server, tree in MB
    files: list[float] = field(default_factory=list)  # that the server has open
    metrics: dict[str, float] = field(default_factory=dict)  # at the end, summed over labels
    killed: int = 0
    programs: int = 0
    seen: dict[int, str] = field(default_factory=dict)  # start times of processes, by pid
    requests: int = 0
    ends: float = math.inf
    seconds: float = 0.0
    left: list[int] = field(default_factory=list)

    def failures(self) -> list[str]:
        """Return what went wrong, in words."""
        found = [f"wrong: {one}" for one in self.wrong[:10]]
        invalid, most = self.outcomes["invalid"], MOST_INVALID * self.programs + 3 * self.killed
        if invalid > most:
            found.append(f"{invalid} invalid verdicts are more than {most:.0f}")
        if self.left:
            found.append(f"processes are left: {self.left}")
        first, last = quarters([server for server, _ in self.memory])
        if last > GROWTH * first + GROWTH_MB:
            found.append(f"the server's memory grew from {first:.0f} to {last:.0f} MB")
        first, last = quarters([tree for _, tree in self.memory])
        if last > GROWTH * first + TREE_GROWTH_MB:
            found.append(f"the memory of all processes grew from {first:.0f} to {last:.0f} MB")
        first, last = quarters(self.files)
        if last > first + GROWTH_FILES:
            found.append(f"the server's open files grew from {first:.0f} to {last:.0f}")
        found += [f"{name} is {self.metrics[name]:g}" for name in HELD if self.metrics.get(name)]
        counted = self.metrics.get("assay_programs_total", 0.0)
        if counted < self.programs:
            found.append(f"the server counted {counted:g} of {self.programs} programs")
        return found


def quarters(values: list[float]) -> tuple[float, float]:
    """Return the medians of the second and of the last quarter of the time."""
    size = max(1, len(values) // 4)
    early, late = values[size : 2 * size] or values or [0.0], values[-size:] or [0.0]
    return statistics.median(early), statistics.median(late)


def make_program(options: SoakOptions, chance: random.Random) -> tuple[dict[str, Any], str]:
    """Return a program of a request, and its right status."""
    if chance.random() < options.hostile:
        tests = chance.choice((CODE, CASES, STDIN))
        program, status = chance.choice(HOSTILE), "fail"
    else:
        program, tests, status = chance.choice(HONEST)
    text = f"{program}# {chance.getrandbits(64)}\n"
    name = f"{chance.getrandbits(64):x}"
    limits = {**LIMITS, "wall_s": options.wall_s}
    return {"id": name, "program": text, "tests": tests, "limits": limits}, status


async def run_client(port: int, todo: list[int], options: SoakOptions, soak: Soak) -> None:
    chance = random.Random(options.seed + len(todo))
    connection = Connection(port)
    while todo and time.monotonic() < soak.ends:
        number = todo.pop()
        soak.requests += 1
        chance.seed(options.seed * 1_000_003 + number)
        made = [make_program(options, chance) for _ in range(chance.choice(options.sizes))]
        body = json.dumps({"programs": [program for program, _ in made]}).encode()
        if chance.random() < options.hang_up:
            with contextlib.suppress(ConnectionError):
                await connection.send("/judge", body)
                await asyncio.sleep(chance.random() / 10)
            connection.close()
            soak.outcomes["hung up"] += 1
            continue
        await call(connection, body, made, soak)
    connection.close()


async def call(
    connection: Connection, body: bytes, made: list[tuple[dict[str, Any], str]], soak: Soak
) -> None:
    """Send a request, later again if the server is full, and check its verdicts."""
    while True:
        reply = await connection.post("/judge", body)
        if reply.status != 429:
            break
        soak.outcomes["429"] += 1
        await asyncio.sleep(float(reply.headers.get("retry-after", "1")))
    if reply.status != 200:
        soak.wrong.append(f"status {reply.status}: {reply.body[:200]!r}")
        return
    for verdict, (program, expected) in zip(reply.json()["verdicts"], made, strict=True):
        soak.programs += 1
        status = verdict["status"]
        soak.outcomes[status] += 1
        earned = verdict["passed"] == verdict["total"]
        is_right = status == "invalid" or (status == expected and earned == (status == "pass"))
        if not is_right or verdict["id"] != program["id"]:
            soak.wrong.append(f"{status} for {program['program']!r}: {verdict}")


def find_tree(pid: int) -> dict[int, str]:
    """Return the descendants of a process with their start times."""
    parents: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError, IndexError):
                fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
                parents[int(folder.name)] = int(fields[1]), fields[19]
    found: dict[int, str] = {}
    wanted = {pid}
    while wanted:
        wanted = {child for child, (parent, _) in parents.items() if parent in wanted} - set(found)
        found.update((child, parents[child][1]) for child in wanted)
    return found


def find_children(pid: int) -> list[int]:
    """Return the processes that a process itself has started: workers, or judge processes."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return sorted(found)


def is_running(pid: int, start: str) -> bool:
    """Return whether a process with this start time still runs."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return False
    return fields[19] == start and fields[0] != "Z"


async def watch(pid: int, options: SoakOptions, soak: Soak) -> None:
    """Sample memory every second, and kill a process of the sandbox every few seconds."""
    chance = random.Random(options.seed)
    next_kill = time.monotonic() + options.kill_every_s
    while True:
        await asyncio.sleep(1)
        tree = await asyncio.to_thread(find_tree, pid)
        soak.seen.update(tree)
        server = resident_mb(pid)
        soak.memory.append((server, server + sum(map(resident_mb, tree))))
        soak.files.append(sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()))
        if options.kill_every_s and time.monotonic() > next_kill:
            # Not a program's own process: nothing tells that from a program that kills itself.
            if workers := await asyncio.to_thread(find_children, pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(workers), signal.SIGKILL)
                    soak.killed += 1
            next_kill = time.monotonic() + options.kill_every_s


async def load(pid: int, port: int, options: SoakOptions, soak: Soak) -> None:
    watching = asyncio.create_task(watch(pid, options, soak))
    todo = list(range(options.requests))
    clients = [run_client(port, todo, options, soak) for _ in range(options.connections)]
    await asyncio.gather(*clients)
    watching.cancel()


def read_metrics(port: int) -> dict[str, float]:
    """Return the server's counts, summed over their labels, once it is idle or time is over."""
    end = time.monotonic() + IDLE_S
    while True:
        found: defaultdict[str, float] = defaultdict(float)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            for line in answer.read().decode().splitlines():
                if not line.startswith("#"):
                    name, _, value = line.rpartition(" ")
                    found[name.partition("{")[0]] += float(value)
        if not any(found[name] for name in HELD) or time.monotonic() > end:
            return dict(found)
        time.sleep(0.5)


def run_soak(options: SoakOptions) -> Soak:
    """Run a server and load it. Return what was seen."""
    # A process whose parent has ended becomes a child of this one, and is found at the end.
    adopt_orphans(True)
    others = find_tree(os.getpid())
    soak = Soak(ends=time.monotonic() + options.seconds)
    started = time.monotonic()
    with running_server("--workers", str(options.workers)) as (pid, port):
        wait_for(f"http://127.0.0.1:{port}/ready")
        asyncio.run(load(pid, port, options, soak))
        soak.seconds = time.monotonic() - started
        soak.metrics = read_metrics(port)
        soak.seen.update(find_tree(pid))
    end = time.monotonic() + 10
    while time.monotonic() < end:
        orphans = find_tree(os.getpid())
        soak.seen.update({one: start for one, start in orphans.items() if one not in others})
        soak.left = [one for one, start in soak.seen.items() if is_running(one, start)]
        if not soak.left:
            break
        time.sleep(0.1)
    adopt_orphans(False)
    return soak


def adopt_orphans(wanted: bool) -> None:
    """Set whether this process becomes the parent of descendants whose own parent has ended."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--hostile", type=float, default=0.02, help="share of hostile programs")
    parser.add_argument(
        "--hang-up", type=float, default=0.01, help="share of requests whose client disconnects"
    )
    parser.add_argument("--kill-every", type=float, default=5.0, help="seconds; 0: never")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--single", action="store_true", help="one program per request")
    parser.add_argument("--seconds", type=float, default=86_400.0, help="stop after this time")
    parser.add_argument("--wall-limit", type=float, default=5.0, help="seconds of a program")
    asked = parser.parse_args()
    options = SoakOptions(
        asked.requests, asked.connections, asked.hostile, asked.hang_up, asked.kill_every,
        asked.workers, asked.seed, (1,) if asked.single else SoakOptions().sizes, asked.seconds,
        asked.wall_limit,
    )  # fmt: skip
    soak = run_soak(options)
    rate = soak.programs / soak.seconds
    print(
        f"{soak.requests} requests, {soak.programs} programs in {soak.seconds:.0f} s ({rate:.0f}/s)"
    )
    print(f"outcomes: {dict(soak.outcomes)}; workers killed: {soak.killed}")
    first, last = quarters([server for server, _ in soak.memory])
    most = max(tree for _, tree in soak.memory) if soak.memory else 0.0
    print(
        f"memory of the server: {first:.0f} MB early, {last:.0f} MB late; all at most {most:.0f} MB"
    )
    first, last = quarters(soak.files)
    print(f"open files of the server: {first:.0f} early, {last:.0f} late; counts {soak.metrics}")
    failures = soak.failures()
    for failure in failures:
        print(f"FAILED: {failure}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
