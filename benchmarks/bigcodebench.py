"""Compare BigCodeBench in the warm sandbox with a fresh interpreter for every sample.

    assay env bigcodebench
    python benchmarks/bigcodebench.py [--tasks 60] [--rounds 3] [--workers 2] [--longest 2]
    python benchmarks/bigcodebench.py --references

The same references of evenly spaced tasks, in the same order (those known to take long first), the
same environment and tests, as many at a time, the two ways in turn. ``fresh interpreter`` starts
Python and imports the libraries for each sample, one after the other in each worker, as upstream's
evaluation does. It too runs inside the sandbox, from a worker that has imported nothing, which
costs it a few milliseconds of about a second: these tests delete folders such as ./src and must
never run in a folder of yours.

References that work or sleep for more than ``--longest`` seconds are left out (0: none), since both
ways spend that alike and a single one decides the figure of a slice. Medians over the rounds;
CPU-milliseconds are those of the sample's processes, the fork included. ``--references`` runs all
1,140 references once instead and says which fail against expectation.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import queue
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from assay import benchmarks
from assay.data.failures import explain_failure
from assay.sandbox import Sandbox, open_sandbox
from assay.types import Job, Program, Tests, Verdict

FRESH = """
import json, sys, types
job = json.load(sys.stdin)
module = types.ModuleType("candidate")
sys.modules["candidate"] = module
for name in ("preamble", "program", "tests"):
    exec(compile(job[name], f"<{name}>", "exec"), module.__dict__)
"""
STARTER = """
import subprocess, sys
done = subprocess.run(
    [sys.executable, "-c", {script!r}], input={job!r}, text=True, capture_output=True
)
assert done.returncode == 0, done.stderr[-300:]
"""


# Whose references fail in the environment, without a network, so that nobody's program passes.
UNSCORABLE = {
    **dict.fromkeys((101, 176, 314, 590, 1005, 1012), "needs the internet"),
    111: "expects what seaborn gives with an older numpy",
    276: "expects what an older scipy gives: the skewness of equal numbers",
    726: "needs the NLTK corpus 'words'",
    734: "needs the NLTK model 'averaged_perceptron_tagger'",
}


def in_fresh_interpreter(job: Job) -> Job:
    """Return a job that does the same in an interpreter that it starts."""
    texts = {"preamble": job.tests.preamble, "program": job.program.code, "tests": job.tests.code}
    code = STARTER.format(script=FRESH, job=json.dumps(texts))
    return dataclasses.replace(job, program=Program(code, "x"), tests=Tests("f", ""), imports=())


class OneByOne:
    """Workers that take a sample each and wait until it is done, even if it only sleeps."""

    def __init__(self, workers: int, tier: str) -> None:
        self._workers = workers
        self._idle: queue.SimpleQueue[Sandbox] = queue.SimpleQueue()
        for _ in range(workers):
            self._idle.put(open_sandbox("process", 1, tier))

    def judge(self, work: list[Job]) -> Iterator[Verdict]:
        with ThreadPoolExecutor(self._workers) as threads:
            yield from threads.map(self._judged, work)

    def _judged(self, job: Job) -> Verdict:
        sandbox = self._idle.get()
        try:
            (verdict,) = sandbox.judge([job])
        finally:
            self._idle.put(sandbox)
        return verdict

    def close(self) -> None:
        while not self._idle.empty():
            self._idle.get().close()


def measured(name: str, sandbox: Sandbox | OneByOne, work: list[Job]) -> tuple[float, float]:
    """Return samples per second and CPU-ms per sample."""
    started, cpu_s = time.monotonic(), 0.0
    for verdict in sandbox.judge(work):
        cpu_s += verdict.cpu_s
        if verdict.status != "pass":
            print(f"{name}: {verdict.task_id} failed: {explain_failure(verdict)}")
    return len(work) / (time.monotonic() - started), cpu_s / len(work) * 1000


def references(work: list[Job], workers: int, tier: str) -> None:
    sandbox = open_sandbox("process", workers, tier)
    started = time.monotonic()
    verdicts = []
    for verdict in sandbox.judge(work):
        verdicts.append(verdict)
        number = int(verdict.task_id.rpartition("/")[2])
        if (verdict.status == "pass") == (number in UNSCORABLE):
            print(f"unexpected: {verdict}")
    elapsed = time.monotonic() - started
    passed = sum(verdict.status == "pass" for verdict in verdicts)
    cpu_s = sum(verdict.cpu_s for verdict in verdicts)
    print(
        f"{passed} of {len(verdicts)} references pass in {elapsed:.0f} s, "
        f"{cpu_s / len(verdicts) * 1000:.0f} CPU-ms each"
    )
    sandbox.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tier", default="auto")
    parser.add_argument("--longest", type=float, default=2.0)
    parser.add_argument("--references", action="store_true")
    asked = parser.parse_args()
    benchmark = benchmarks.load("bigcodebench")
    work = [
        Job(
            p.task_id, 0, Program(p.reference, "x"), p.tests, benchmark.limits, benchmark.imports,
            benchmark.environment,
        )
        for p in benchmark.problems
    ]  # fmt: skip
    if asked.references:
        references(work, asked.workers, asked.tier)
        return
    work = work[:: len(work) // asked.tasks][: asked.tasks]
    sandbox = open_sandbox("process", asked.workers, asked.tier)
    started = time.monotonic()
    list(sandbox.judge(work[1 : 1 + asked.workers]))
    print(f"start of the workers: {time.monotonic() - started:.1f} s")
    seconds = {v.task_id: v.wall_s for v in sandbox.judge(work)}
    work.sort(key=lambda job: seconds[job.task_id], reverse=True)  # as ``assay score`` does
    if asked.longest:
        long = {task: s for task, s in seconds.items() if s > asked.longest}
        print("left out:", ", ".join(f"{task} ({s:.0f} s)" for task, s in long.items()) or "none")
        work = [job for job in work if job.task_id not in long]
    print(f"{len(work)} tasks, {asked.workers} at a time", flush=True)
    fresh = OneByOne(asked.workers, asked.tier)
    contestants = {
        "assay": (sandbox, work),
        "fresh interpreter": (fresh, [in_fresh_interpreter(job) for job in work]),
    }
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    for _ in range(asked.rounds):
        for name, contestant in contestants.items():
            figures[name].append(measured(name, *contestant))
    medians = {
        name: [statistics.median(column) for column in zip(*rows, strict=True)]
        for name, rows in figures.items()
    }
    print(f"{'':<20}{'samples/s':>10}{'CPU-ms':>9}")
    for name, (rate, cpu) in medians.items():
        print(f"{name:<20}{rate:>10.2f}{cpu:>9.0f}")
    rate, cpu = (medians["assay"][i] / medians["fresh interpreter"][i] for i in (0, 1))
    print(f"assay is {rate:.1f} times as fast, with {1 / cpu:.1f} times less CPU")
    sandbox.close()
    fresh.close()


if __name__ == "__main__":
    main()
