"""Measure how much CPU time right programs need, over all recorded completions.

    python benchmarks/time_limits.py [--benchmarks NAME ...] [--keep FILE] [--workers 2]

Judges every recorded completion (benchmarks/recorded.py) under the benchmark's fixed limits and
prints two tables: how many right programs need more than 1, 2, 3 and 5 CPU seconds, and what
several rules for a limit per problem would cost and change. ``--keep`` keeps the runs and the
measurements, so that the same command resumes. docs/time-limits.md has the tables.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import recorded
from assay import benchmarks
from assay.cli._progress import ProgressDisplay
from assay.judging import references
from assay.pipeline import ScoreConfig, score
from assay.runs import RunReader
from assay.sandbox import open_sandbox
from assay.types import Job, Program, TimeRule

NAMES = ("humaneval", "humanevalplus", "mbpp", "mbppplus")
SECONDS = (1, 2, 3, 5)
SHORTEST_S = 1e-3  # of a reference; less cannot be told from nothing
LONG_S = 0.5  # a program that takes longer keeps others waiting
REPEATS = 3  # of every reference; the least of them counts
RULES = (TimeRule(3.0, 20.0), TimeRule(2.0, 50.0), TimeRule(1.0, 100.0))  # and the one in use


@dataclass(frozen=True, slots=True)
class Measured:
    """The verdict on one completion, and the CPU time of its problem's reference."""

    benchmark: str
    task_id: str
    sample: int
    origin: str
    status: str
    reason: str
    cpu_s: float
    reference_s: float
    fixed_s: float  # the limit that it was judged under

    @property
    def right(self) -> bool:
        return self.status == "pass"

    def limit_s(self, rule: TimeRule) -> float:
        return references.limit_cpu_s(rule, self.task_id, self.reference_s, self.fixed_s)


def measure(name: str, folder: Path, workers: int) -> list[Measured]:
    """Judge all recorded completions of a benchmark, and its references. Resume earlier runs."""
    benchmark = benchmarks.load(name)
    tasks = {p.task_id for p in benchmark.problems}
    given = [one for one in recorded.read(name) if one.task_id in tasks]
    origins: dict[str, list[str]] = defaultdict(list)
    for one in given:
        origins[one.task_id].append(one.origin)
    folder.mkdir(parents=True, exist_ok=True)
    samples = folder / f"{name}.jsonl"
    recorded.write(given, samples)
    config = ScoreConfig(
        name, folder, samples_file=str(samples), partial=True, no_cache=True, workers=workers,
        time_limit=benchmark.limits.cpu_s,
    )  # fmt: skip
    with ProgressDisplay(name, quiet=not sys.stderr.isatty()) as display:
        result = score(config, display)
    reference_s = measure_references(name, workers)
    return [
        Measured(
            name, v.task_id, v.sample, origins[v.task_id][v.sample], v.status, v.reason, v.cpu_s,
            reference_s.get(v.task_id, 0.0), benchmark.limits.cpu_s,
        )
        for v in RunReader(result.folder).verdicts.values()
    ]  # fmt: skip


def measure_references(name: str, workers: int) -> dict[str, float]:
    """Return the CPU seconds of every reference, the least of several runs."""
    found: dict[str, list[float]] = defaultdict(list)
    sandbox = open_sandbox("process", workers)
    with ProgressDisplay(name, quiet=True) as display:
        benchmark = references.check(benchmarks.load(name), sandbox, display).benchmark
    jobs = (
        Job(p.task_id, n, Program(p.reference, "reference"), p.tests, benchmark.limits)
        for n in range(REPEATS)
        for p in benchmark.problems
    )
    for verdict in sandbox.judge(jobs):
        found[verdict.task_id].append(verdict.cpu_s)
    sandbox.close()
    return {task_id: min(seconds) for task_id, seconds in found.items()}


def needs_table(rows: Iterable[Measured]) -> list[str]:
    """Return the table of right programs by the CPU time that they need."""
    lines = [
        "| benchmark | programs | right | time-outs | "
        + " | ".join(f"right, > {s} s" for s in SECONDS)
        + " | slowest right | largest ratios to the reference |",
        "|---|" + "---|" * (len(SECONDS) + 5),
    ]
    for name, found in _by_benchmark(rows).items():
        right = [row for row in found if row.right]
        slowest = max(right, key=lambda row: row.cpu_s)
        cells = [
            name, len(found), len(right), sum(row.reason == "timeout" for row in found),
            *(sum(row.cpu_s > s for row in right) for s in SECONDS),
            f"{slowest.cpu_s:.2f} s ({slowest.task_id})", _largest_ratios(right),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(f'{c:,}' if isinstance(c, int) else c for c in cells)} |")
    return lines


def _largest_ratios(right: Iterable[Measured], count: int = 2) -> str:
    """Return how many times its reference's CPU time a right program needs, for the worst tasks."""
    ratios: dict[str, float] = defaultdict(float)
    for row in right:
        ratio = row.cpu_s / max(row.reference_s, SHORTEST_S)
        ratios[row.task_id] = max(ratio, ratios[row.task_id])
    worst = sorted(ratios, key=lambda task_id: -ratios[task_id])[:count]
    return ", ".join(f"{ratios[task_id]:,.0f} ({task_id})" for task_id in worst)


def rules_table(rows: Iterable[Measured]) -> list[str]:
    """Return what rules cost and change, for the benchmarks that have one."""
    lines = [
        "| benchmark | limit | programs that reach it | their CPU s | right ones among them "
        "| least margin of the others | longest wait |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in _by_benchmark(rows).items():
        if own := benchmarks.load(name).time_rule:
            fixed = TimeRule(found[0].fixed_s, 0.0)
            rules = dict.fromkeys((fixed, *RULES, own))
            lines += [f"| {name} | {_describe(rule)} | {_effect(rule, found)} |" for rule in rules]
    return lines


def _describe(rule: TimeRule) -> str:
    if not rule.factor:
        return f"{rule.least_s:g} s for all"
    without = f", 10 s for {', '.join(rule.exempt)}" if rule.exempt else ""
    return f"max({rule.least_s:g} s, {rule.factor:g} x reference){without}"


def _effect(rule: TimeRule, rows: list[Measured]) -> str:
    """Return how many programs a rule stops, what they cost, and how close right ones come."""
    stopped = [row for row in rows if row.cpu_s >= row.limit_s(rule)]
    right = [row for row in rows if row.right and row not in stopped]
    margin = min(row.limit_s(rule) / max(row.cpu_s, 1e-3) for row in right)
    cost_s = sum(row.limit_s(rule) for row in stopped)
    lost = sum(row.right for row in stopped)
    wait_s = longest_wait_s([min(row.cpu_s, row.limit_s(rule)) for row in rows])
    return f"{len(stopped)} | {cost_s:.0f} | {lost} | {margin:.1f} x | {wait_s:.1f} s"


def longest_wait_s(costs_s: Iterable[float], workers: int = 2) -> float:
    """Return for how long, at most, all workers are busy with programs that take long.

    Other programs wait then. The programs are taken in order, each by the worker that is free.
    """
    free_s = [0.0] * workers  # by worker: when it is free
    longest_s = 0.0
    long_until_s = [0.0] * workers
    for cost_s in costs_s:
        worker = free_s.index(min(free_s))
        start_s = free_s[worker]
        free_s[worker] += cost_s
        if cost_s > LONG_S:
            long_until_s[worker] = free_s[worker]
            longest_s = max(longest_s, min(long_until_s) - start_s)
    return longest_s


def _by_benchmark(rows: Iterable[Measured]) -> dict[str, list[Measured]]:
    found: dict[str, list[Measured]] = defaultdict(list)
    for row in rows:
        found[row.benchmark].append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--benchmarks", nargs="*", choices=NAMES, default=NAMES)
    parser.add_argument("--keep", type=Path, help="folder of the runs and measurements")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.keep or Path(scratch)
        for name in asked.benchmarks:
            kept = folder / f"{name}-measured.jsonl"
            if not kept.exists():
                found = measure(name, folder, asked.workers)
                kept.write_text("".join(json.dumps(asdict(row)) + "\n" for row in found))
            lines = kept.read_text().splitlines()
            rows += [Measured(**json.loads(line)) for line in lines]
    print("\n".join([*needs_table(rows), "", *rules_table(rows)]))


if __name__ == "__main__":
    main()
