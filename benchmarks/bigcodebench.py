"""BigCodeBench's tests in the warm sandbox, beside a fresh interpreter for every sample.

    assay env bigcodebench
    python benchmarks/bigcodebench.py [--tasks 60] [--rounds 3] [--workers 2]

The same references of evenly spaced tasks, in the same order, the same environment and tests, as
many at a time, the two ways in turn. ``fresh interpreter`` imports the libraries for each sample
and has no isolation; that is how upstream's evaluation works. Medians over the rounds;
CPU-milliseconds count the whole machine, less what it was busy with before.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from assay import benchmarks
from assay.sandbox import environments, open_sandbox
from assay.types import Job, Program
from sandbox import measured

FRESH = """
import json, sys, types
job = json.load(sys.stdin)
module = types.ModuleType("candidate")
sys.modules["candidate"] = module
for name in ("preamble", "program", "tests"):
    exec(compile(job[name], f"<{name}>", "exec"), module.__dict__)
"""


def warm(work: list[Job], workers: int, tier: str) -> tuple[Callable[[], int], float]:
    """The sandbox, started, and how many seconds its start took."""
    sandbox = open_sandbox("process", workers, tier)
    started = time.monotonic()
    list(sandbox.judge(work[:workers]))
    elapsed = time.monotonic() - started
    return lambda: _passed("warm", [v.status == "pass" for v in sandbox.judge(work)]), elapsed


def fresh(work: list[Job], workers: int) -> Callable[[], int]:
    environment = environments.find(work[0].environment)
    variables = {**os.environ, **dict(environment.variables), "PYTHONHASHSEED": "0"}

    def one(job: Job) -> bool:
        texts = {"preamble": job.tests.preamble, "program": job.program.code}
        done = subprocess.run(
            [environment.interpreter, "-c", FRESH],
            input=json.dumps({**texts, "tests": job.tests.code}),
            text=True,
            capture_output=True,
            env=variables,
        )
        return done.returncode == 0

    def run() -> int:
        with ThreadPoolExecutor(workers) as pool:
            return _passed("fresh", list(pool.map(one, work)))

    return run


def _passed(name: str, results: list[bool]) -> int:
    if not all(results):
        print(f"{name}: {results.count(False)} of {len(results)} references failed")
    return len(results)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tier", default="auto")
    asked = parser.parse_args()
    benchmark = benchmarks.load("bigcodebench")
    step = len(benchmark.problems) // asked.tasks
    work = [
        Job(
            p.task_id, 0, Program(p.reference, "x"), p.tests, benchmark.limits, benchmark.imports,
            benchmark.environment,
        )
        for p in benchmark.problems[::step][: asked.tasks]
    ]  # fmt: skip
    ours, start_s = warm(work, asked.workers, asked.tier)
    print(f"{len(work)} tasks, {asked.workers} at a time; start of the workers: {start_s:.1f} s")
    contestants = {"assay": ours, "fresh interpreter": fresh(work, asked.workers)}
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    for _ in range(asked.rounds):
        for name, contestant in contestants.items():
            figures[name].append(measured(contestant))
    medians = {
        name: [statistics.median(column) for column in zip(*rows, strict=True)]
        for name, rows in figures.items()
    }
    print(f"{'':<20}{'samples/s':>10}{'CPU-ms':>9}")
    for name, (rate, cpu) in medians.items():
        print(f"{name:<20}{rate:>10.2f}{cpu:>9.0f}")
    ratio = medians["assay"][0] / medians["fresh interpreter"][0]
    print(f"assay is {ratio:.1f} times as fast")


if __name__ == "__main__":
    main()
