"""Compare verdicts and ExcessCode with results that upstream's evaluator of CanItEdit recorded.

    ASSAY_DATA_DIR=... python benchmarks/canitedit.py FOLDER [--samples 20] [--workers 2]

FOLDER has upstream's ``*.results.json.gz``, one for each problem and instruction. The programs are
those that were recorded, so extraction has no part in it. Identical programs are judged once.
"""

from __future__ import annotations

import argparse
import difflib
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from assay import benchmarks
from assay.data.failures import explain_failure
from assay.judging.measures import SLOWER
from assay.sandbox import Sandbox, open_sandbox
from assay.scoring.estimates import measure_score
from assay.types import Benchmark, Job, Measure, Problem, Program

CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded program with the number of its samples. ``excess`` is None if not measured."""

    problem: Problem
    program: str
    count: int
    passed: bool
    status: str
    excess: float | None


def read(folder: Path, benchmark: Benchmark, samples: int) -> Iterator[Recorded]:
    problems = {problem.task_id: problem for problem in benchmark.problems}
    for path in sorted(folder.rglob("*.results.json.gz")):
        record = json.loads(gzip.decompress(path.read_bytes()))
        kind = record["instr_kind"].removeprefix("instruction_")
        problem = problems[f"CanItEdit/{record['id']}/{kind}"]
        results = record["results"][:samples]
        programs = [one["program_no_test"] for one in results]
        for program in dict.fromkeys(programs):
            same = [one for one in results if one["program_no_test"] == program]
            passes = [one["status"] == "OK" and one["exit_code"] == 0 for one in same]
            if len(set(passes)) > 1:
                print(
                    f"  recorded both ways: {problem.task_id}, {sum(passes)} of {len(passes)} pass"
                )
            one = next((one for one, passed in zip(same, passes, strict=True) if passed), same[0])
            excess = None
            if one["coverage_missing"] is not None:
                lines = list(difflib.Differ().compare(
                    record["before"].splitlines(), program.splitlines()
                ))  # fmt: skip
                excess = len(one["coverage_missing"]) / len(lines)
            yield Recorded(problem, program, len(same), any(passes), one["status"], excess)


def job(benchmark: Benchmark, number: int, one: Recorded, measure: Measure | None = None) -> Job:
    code, tests, limits = one.program, one.problem.tests, benchmark.limits
    imports = benchmark.imports
    if measure is not None:
        code, tests = measure.probe(one.problem, code)
        limits = replace(limits, cpu_s=SLOWER * limits.cpu_s, wall_s=SLOWER * limits.wall_s)
        imports = (*imports, *measure.imports)
    return Job(
        one.problem.task_id, number, Program(code, "recorded"), tests, limits, imports,
        benchmark.environment,
    )  # fmt: skip


def compare_verdicts(sandbox: Sandbox, benchmark: Benchmark, recorded: list[Recorded]) -> None:
    agree: Counter[bool] = Counter()
    jobs = (job(benchmark, number, one) for number, one in enumerate(recorded))
    for verdict in sandbox.judge(jobs):
        one = recorded[verdict.sample]
        same = (verdict.status == "pass") == one.passed
        agree[same] += one.count
        if not same:
            print(
                f"  {verdict.task_id} x{one.count}: recorded {one.status}, here "
                f"{verdict.status} {verdict.reason} {explain_failure(verdict)[:150]} "
                f"{verdict.failing_test}"
            )
    print(f"verdicts: {agree[True]} of {agree.total()} samples agree")


def compare_excess(sandbox: Sandbox, benchmark: Benchmark, recorded: list[Recorded]) -> None:
    (measure,) = benchmark.measures
    measured = [one for one in recorded if one.excess is not None]
    jobs = (job(benchmark, number, one, measure) for number, one in enumerate(measured))
    equal: Counter[bool] = Counter()
    ours: dict[str, list[float | None]] = {}
    theirs: dict[str, list[float | None]] = {}
    for verdict, outputs in sandbox.outputs(jobs):
        one = measured[verdict.sample]
        found = None if outputs is None else measure.read(outputs)
        same = found is not None and abs(found - (one.excess or 0.0)) < CLOSE
        equal[same] += one.count
        ours.setdefault(verdict.task_id, []).extend([found] * one.count)
        theirs.setdefault(verdict.task_id, []).extend([one.excess] * one.count)
        if not same:
            print(
                f"  {verdict.task_id} x{one.count}: recorded {one.excess:.4f}, here {found} "
                f"{verdict.reason} {explain_failure(verdict)[:150]}"
            )
    print(f"ExcessCode: {equal[True]} of {equal.total()} samples are equal")
    for name, numbers in (("recorded", theirs), ("here", ours)):
        print(f"  {name}: {measure_score(numbers, {})}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    benchmark = benchmarks.load("canitedit")
    recorded = list(read(options.folder, benchmark, options.samples))
    print(f"{sum(one.count for one in recorded)} samples, {len(recorded)} different programs")
    sandbox = open_sandbox("process", options.workers)
    compare_verdicts(sandbox, benchmark, recorded)
    compare_excess(sandbox, benchmark, recorded)
    sandbox.close()


if __name__ == "__main__":
    main()
