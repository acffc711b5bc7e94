"""Measure what it costs to call a judge once per program, as a training loop does.

    python benchmarks/judge_calls.py [--programs 1000] [--rounds 3]

The same programs through one ``assay.Judge``: all in one call, and one per call. CPU seconds are
those of this process and of all it started; the ratio is the median over the rounds.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import time
from collections.abc import Callable

import assay
from assay.sandbox.inside.isolation.machine import work_of


def measure(work: Callable[[], None]) -> tuple[float, float]:
    """Return CPU and wall seconds."""
    cpu, started = work_of(os.getpid())[0], time.monotonic()
    work()
    return work_of(os.getpid())[0] - cpu, time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args()
    problems = assay.load_benchmark("humaneval").problems
    pairs = itertools.cycle((p.task_id, p.reference) for p in problems)
    programs = list(itertools.islice(pairs, asked.programs))
    rows = []
    with assay.Judge("humaneval", workers=asked.workers) as judge:
        judge.judge(programs[:164])

        def one_by_one() -> None:
            for program in programs:
                judge.judge([program])

        for _ in range(asked.rounds):
            together, apart = measure(lambda: judge.judge(programs) and None), measure(one_by_one)
            rows.append((together, apart, apart[0] / together[0]))
    for name, index in (("one call", 0), (f"{asked.programs} calls", 1)):
        cpu, wall = (statistics.median(row[index][i] for row in rows) for i in (0, 1))
        print(f"{name:<12}{cpu:>8.2f} CPU-s{wall:>8.2f} s")
    print(f"ratio of CPU {statistics.median(row[2] for row in rows):.2f}")


if __name__ == "__main__":
    main()
