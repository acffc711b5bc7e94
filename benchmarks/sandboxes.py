"""Compare the sandbox kinds: the same HumanEval references, one run, interleaved.

    python benchmarks/sandboxes.py [--rounds 3] [--workers 2] [--kinds process docker wasm]

Prints medians over the rounds of samples per second, warm. ``docker run`` starts a container for
each sample, with the same limits, as a pipeline around the command does; measured with few samples.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from assay import benchmarks
from assay.sandbox import Sandbox, open_sandbox
from assay.sandbox.container.image import image_id
from assay.sandbox.container.runtime import find_runtime
from assay.sandbox.container.worker import run_arguments
from assay.sandbox.inside.serving.messages import WorkerLimits
from assay.types import Benchmark, Job, Program

LIMITS = WorkerLimits(memory_mb=512, processes=64, files_mb=64)
COLD_SAMPLES = 8


def jobs(benchmark: Benchmark) -> list[Job]:
    return [
        Job(p.task_id, 0, Program(p.reference, ""), p.tests, benchmark.limits)
        for p in benchmark.problems
    ]


def warm(sandbox: Sandbox, work: list[Job]) -> float:
    started = time.monotonic()
    passed = sum(verdict.status == "pass" for verdict in sandbox.judge(work))
    assert passed == len(work), f"{len(work) - passed} references fail"
    return len(work) / (time.monotonic() - started)


def cold(work: list[Job], workers: int) -> float:
    """Start a container per sample: program and tests share it, and the exit code counts."""
    runtime = find_runtime()
    arguments = run_arguments(
        image_id(runtime), "name", LIMITS, 200_001, podman=runtime.is_podman()
    )
    name = arguments.index("--name")
    arguments = [*arguments[:name], *arguments[name + 2 :]]

    def run(job: Job) -> int:
        program = "\n".join((job.tests.preamble, job.program.code, job.tests.code))
        command = [runtime.tool, *arguments[: arguments.index("-P")], "-c", program]
        return subprocess.run(command, capture_output=True).returncode

    started = time.monotonic()
    with ThreadPoolExecutor(workers) as pool:
        codes = list(pool.map(run, work))
    assert codes == [0] * len(work), codes
    return len(work) / (time.monotonic() - started)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kinds", nargs="*", default=["process", "docker", "wasm"])
    asked = parser.parse_args()
    work = jobs(benchmarks.load("humaneval"))
    sandboxes = {kind: open_sandbox(kind, asked.workers) for kind in asked.kinds}
    rates: dict[str, list[float]] = {kind: [] for kind in sandboxes}
    for sandbox in sandboxes.values():
        warm(sandbox, work)
    for _ in range(asked.rounds):
        for kind, sandbox in sandboxes.items():
            rates[kind].append(warm(sandbox, work))
        if "docker" in sandboxes:
            rates.setdefault("docker run", []).append(cold(work[:COLD_SAMPLES], asked.workers))
    for sandbox in sandboxes.values():
        sandbox.close()
    for kind, found in rates.items():
        print(f"{kind:<12}{statistics.median(found):9.1f} samples/s")


if __name__ == "__main__":
    main()
