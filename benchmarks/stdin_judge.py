"""Compare programs that read standard input with a fresh interpreter per case.

    python benchmarks/stdin_judge.py [--rounds 3] [--cases 600] [--workers 2] [--tier auto]

All sides run the same right programs on the same inputs, interleaved, with equal workers, and
compare the outputs. ``fresh`` starts ``python program.py`` for every case, without any isolation:
as a user's interpreter starts (with site packages), and as bare as it can be (``-I -S``).
``prelude`` puts LiveCodeBench's imports before the program, as upstream does for every case. The
programs are this file's own. CPU-ms per case count this process and all that it starts; they are
the figure that other load touches least. ``possible`` is what all cores would reach with it.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from assay.benchmarks.livecodebench import IMPORTS, PRELUDE
from assay.data import text_cases
from assay.sandbox import open_sandbox
from assay.sandbox.inside.isolation.machine import work_of
from assay.types import Job, Limits, Program, Tests
from assay.work.machine import usable_cores

PROGRAM = """\
import sys


def main():
    data = sys.stdin.read().split()
    n = int(data[0])
    numbers = list(map(int, data[1 : n + 1]))
    best = current = numbers[0]
    for number in numbers[1:]:
        current = max(number, current + number)
        best = max(best, current)
    print(best)
    print(*sorted(numbers)[:5])


if __name__ == "__main__":
    main()
"""
LIMITS = Limits(cpu_s=600.0, call_cpu_s=6.0, wall_s=30.0, memory_mb=1024)
PROGRAMS = 8  # that share the cases: a program is compiled once for all of its own


def make_cases(count: int) -> list[tuple[str, str]]:
    cases = []
    for seed in range(count):
        numbers = [(seed * 7919 + i * 104729) % 2001 - 1000 for i in range(50)]
        best = max(sum(numbers[i:j]) for i, j in itertools.combinations(range(len(numbers) + 1), 2))
        given = f"{len(numbers)}\n{' '.join(map(str, numbers))}\n"
        cases.append((given, f"{best}\n{' '.join(map(str, sorted(numbers)[:5]))}\n"))
    return cases


def cpu_s() -> float:
    """Return the CPU seconds of this process and all that it has started, ended or not."""
    return work_of(os.getpid())[0]


def measure(work: Callable[[], int]) -> tuple[float, float]:
    """Return cases per second and CPU-ms per case of ``work``, which returns its count."""
    cpu, started = cpu_s(), time.monotonic()
    count = work()
    elapsed = time.monotonic() - started
    return count / elapsed, (cpu_s() - cpu) / count * 1000


def ours(
    cases: list[tuple[str, str]], workers: int, tier: str, prelude: str, imports: tuple[str, ...]
) -> Callable[[], int]:
    sandbox = open_sandbox("process", workers, tier)
    shares = [cases[number::PROGRAMS] for number in range(PROGRAMS)]
    jobs = [
        Job(
            f"t{number}", 0, Program(PROGRAM, "x"),
            Tests("", "", prelude, "separated", texts=text_cases.pack(share)),
            LIMITS, imports,
        )
        for number, share in enumerate(shares)
    ]  # fmt: skip

    def run() -> int:
        right = 0
        for verdict in sandbox.judge(jobs):
            assert verdict.status == "pass", verdict
            right += verdict.groups["cases"][0]
        return right

    run()  # starts the workers
    return run


def fresh(
    cases: list[tuple[str, str]], workers: int, command: list[str], program: str
) -> Callable[[], int]:
    folder = tempfile.mkdtemp()
    path = Path(folder, "program.py")
    path.write_text(program)

    def one(case: tuple[str, str]) -> int:
        given, expected = case
        found = subprocess.run(
            [*command, str(path)], input=given, capture_output=True, text=True, check=True
        )
        assert found.stdout.split() == expected.split()
        return 1

    def run() -> int:
        with ThreadPoolExecutor(workers) as pool:
            return sum(pool.map(one, cases))

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", type=int, default=600)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tier", default="auto")
    options = parser.parse_args()
    cases, workers = make_cases(options.cases), options.workers
    bare = [sys.executable, "-I", "-S"]
    sides = {
        "fresh interpreter": fresh(cases, workers, [sys.executable], PROGRAM),
        "fresh interpreter, bare": fresh(cases, workers, bare, PROGRAM),
        "assay": ours(cases, workers, options.tier, "", ()),
        "fresh interpreter, prelude": fresh(cases, workers, bare, PRELUDE + PROGRAM),
        "assay, prelude": ours(cases, workers, options.tier, PRELUDE, IMPORTS),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for _ in range(options.rounds):
        for name, work in sides.items():
            found[name].append(measure(work))
    print(f"{options.cases} cases, {workers} workers, median of {options.rounds} rounds")
    print(f"{'':30}{'cases/s':>10}{'CPU-ms':>10}{'possible/s':>12}")
    for name, figures in found.items():
        speed, cpu = (statistics.median(column) for column in zip(*figures, strict=True))
        print(f"{name:30}{speed:10.0f}{cpu:10.2f}{1000 * usable_cores() / cpu:12.0f}")


if __name__ == "__main__":
    main()
