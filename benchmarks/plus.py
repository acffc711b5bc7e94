"""Compare with EvalPlus on HumanEval+ and MBPP+: the same samples, one run, interleaved.

    python benchmarks/plus.py [--benchmarks humanevalplus mbppplus] [--rounds 3] [--samples 5]

Each task has samples that are right and wrong in turn. Both have computed the expected outputs
before, both run base and plus inputs, with equal workers. EvalPlus is run by its own command and
stops at the first wrong answer; assay continues, to count the right ones.

Some programs need seconds for extreme inputs, whoever runs them; ``--light`` leaves their tasks
out. ``assay score`` is the command as users run it, with a cold cache: it executes identical
programs once, and the samples here are few different ones. The first figure executes every sample.
``--recorded`` takes the programs that different models wrote instead
(``$ASSAY_DATA_DIR/completions``), as many a task as there are models, up to ``--samples``.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import secrets
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import peers
from assay import benchmarks
from assay.cli._progress import ProgressDisplay
from assay.data.failures import explain_failure
from assay.judging import references
from assay.pipeline import ScoreConfig, score
from assay.sandbox import open_sandbox
from assay.types import Benchmark, Job, Program
from parity import PLUS, Samples, recorded_samples, with_all_tasks
from sandbox import measured

# The reference works for more than half a second.
HEAVY = {
    *(f"HumanEval/{n}" for n in (15, 36, 59, 83, 94, 130, 139)),
    *(f"Mbpp/{n}" for n in (123, 255, 271, 392, 589, 592, 599, 603, 630)),
}
Programs = list[tuple[str, int, str]]  # task, sample, code
# Returns what no task expects.
WRONG = "def {}(*args, **kwargs):\n    return ...\n"


def recorded(benchmark: Benchmark, count: int) -> Programs:
    """Programs of different models."""
    folder = Path(os.environ.get("ASSAY_DATA_DIR", "."), "completions")
    prompts = {p.task_id: p.prompt for p in benchmark.problems}
    by_task: dict[str, list[str]] = {task_id: [] for task_id in prompts}
    for samples in recorded_samples(folder):
        if samples.benchmark == benchmark.name:
            for record in samples.records:
                if record["task_id"] in by_task:
                    whole = prompts[record["task_id"]] + record.get("completion", "")
                    by_task[record["task_id"]].append(record.get("solution", whole))
    return [(t, n, code) for t, codes in by_task.items() for n, code in enumerate(codes[:count])]


def made(benchmark: Benchmark, count: int) -> Programs:
    """Return references and wrong programs in turn."""
    found = []
    for number, problem in enumerate(benchmark.problems):
        wrong = WRONG.format(problem.tests.entry_point)
        for sample in range(count):
            code = problem.reference if (number + sample) % 2 else wrong
            found.append((problem.task_id, sample, code))
    return found


def ours(benchmark: Benchmark, programs: Programs, workers: int) -> Callable[[], int]:
    sandbox = open_sandbox("process", workers)
    with ProgressDisplay(benchmark.name, quiet=not sys.stderr.isatty()) as display:
        checked = references.check(benchmark, sandbox, display).benchmark
    tests = {p.task_id: p.tests for p in checked.problems}
    jobs = [
        Job(task_id, sample, Program(code, "x"), tests[task_id], benchmark.limits)
        for task_id, sample, code in programs
    ]

    def run() -> int:
        for verdict in sandbox.judge(jobs):
            if verdict.status == "invalid":
                raise SystemExit(f"{verdict.task_id}: {explain_failure(verdict)}")
        return len(jobs)

    return run


def product(benchmark: Benchmark, programs: Programs, workers: int) -> Callable[[], int]:
    """``assay score``; no verdict is known before, since no program was seen before."""

    def run() -> int:
        salt = f"# {secrets.token_hex(8)}\n"
        records = [{"task_id": t, "solution": salt + code} for t, _, code in programs]
        with tempfile.TemporaryDirectory() as scratch:
            path = Samples("", benchmark.name, records, []).write(Path(scratch))
            config = ScoreConfig(
                benchmark.name, Path(scratch), samples_file=str(path), partial=True
            )
            config = dataclasses.replace(config, workers=workers)
            with ProgressDisplay(benchmark.name, quiet=True) as display:
                score(config, display)
        return len(records)

    return run


def evalplus(benchmark: Benchmark, programs: Programs, workers: int) -> Callable[[], int]:
    records = [{"task_id": t, "solution": code} for t, _, code in programs]
    samples = Samples("", benchmark.name, records, [])

    def run() -> int:
        with peers.folder() as folder:
            peers.evalplus(with_all_tasks(samples).write(folder), PLUS[benchmark.name], workers)
        return len(records)

    return run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--benchmarks", nargs="*", default=list(PLUS), choices=list(PLUS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--light", action="store_true")
    parser.add_argument("--recorded", action="store_true")
    asked = parser.parse_args()
    for name in asked.benchmarks:
        benchmark = benchmarks.load(name)
        if asked.light:
            light = [p for p in benchmark.problems if p.task_id not in HEAVY]
            benchmark = dataclasses.replace(benchmark, problems=tuple(light))
        programs = (recorded if asked.recorded else made)(benchmark, asked.samples)
        contestants = {
            "assay": ours(benchmark, programs, asked.workers),
            "assay score": product(benchmark, programs, asked.workers),
            "EvalPlus 0.3.1": evalplus(benchmark, programs, asked.workers),
        }
        different = len({(task_id, code) for task_id, _, code in programs})
        print(f"{name}: {len(programs)} programs, {different} different", flush=True)
        evalplus(benchmark, made(benchmark, 1), asked.workers)()  # computes, keeps expected outputs
        figures: dict[str, list[tuple[float, float]]] = {title: [] for title in contestants}
        for _ in range(asked.rounds):
            for title, contestant in contestants.items():
                figures[title].append(measured(contestant))
        medians = {
            title: [statistics.median(column) for column in zip(*rows, strict=True)]
            for title, rows in figures.items()
        }
        for title, (rate, cpu_ms) in medians.items():
            times = medians["assay"][0] / rate
            print(f"{name:<15}{title:<16}{rate:>8.1f}/s{cpu_ms:>9.1f} CPU-ms  assay {times:.1f}x")


if __name__ == "__main__":
    main()
