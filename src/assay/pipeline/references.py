"""Run reference solutions: they give expected outputs and show which tasks can pass here."""

from __future__ import annotations

import math
import platform
from dataclasses import dataclass, replace

from assay import codec, runs, sandbox
from assay.datasets import cache_dir
from assay.pipeline.stages.answers import judge_jobs
from assay.progress import Reporter
from assay.protocol import tests_digest
from assay.sandbox.environments import store as environments
from assay.types import Benchmark, Cases, Job, Problem, Program, TimeRule

FORMAT = 4  # of the cached data; raise it when ``plain`` or ``digests`` change too
VERDICT = "timed verdict"  # earlier versions kept verdicts without CPU time, as "verdict"


@dataclass(frozen=True, slots=True)
class CheckedBenchmark:
    """A benchmark ready to judge with, and the tasks whose own reference does not pass here."""

    benchmark: Benchmark
    unscorable: dict[str, str]
    seconds: dict[str, float]  # wall time to judge each reference, by task


def check(
    benchmark: Benchmark, judge: sandbox.Sandbox, reporter: Reporter, *, again: bool = False
) -> CheckedBenchmark:
    """Run every reference solution, unless its outcome is cached on this machine."""
    references = _References(benchmark, judge, reporter, again)
    complete, unscorable = references.add_expected_outputs()
    measured = references.measure(complete)
    unscorable |= {task_id: one.failure for task_id, one in measured.items() if one.failure}
    if references.executed:
        judge.close()  # a worker that ran references never runs another program
    cpu_s = _cpu_limits(benchmark, measured)
    benchmark = replace(benchmark, problems=tuple(complete), cpu_s=cpu_s)
    seconds = {task_id: one.wall_s for task_id, one in measured.items()}
    order = [p.task_id for p in benchmark.problems if p.task_id in unscorable]
    return CheckedBenchmark(benchmark, {task_id: unscorable[task_id] for task_id in order}, seconds)


def _cpu_limits(benchmark: Benchmark, measured: dict[str, _Measured]) -> dict[str, float]:
    """Return the CPU limits by task. Without a rule, or a reference that passes, there is none.

    One measurement is enough: a busy machine makes it longer, never shorter.
    """
    rule = benchmark.time_rule
    if rule is None:
        return {}
    return {
        task_id: limit_cpu_s(rule, task_id, one.cpu_s, benchmark.limits.cpu_s)
        for task_id, one in measured.items()
        if not one.failure
    }


def limit_cpu_s(rule: TimeRule, task_id: str, reference_s: float, fixed_s: float) -> float:
    """Return a task's CPU limit in seconds, rounded up to tenths."""
    if task_id in rule.exempt:
        return fixed_s
    return min(fixed_s, max(rule.least_s, math.ceil(rule.factor * reference_s * 10) / 10))


@dataclass(frozen=True, slots=True)
class _Measured:
    """The outcome of a reference, as it is cached."""

    failure: str  # empty if it passes
    wall_s: float
    cpu_s: float


class _References:
    def __init__(
        self, benchmark: Benchmark, judge: sandbox.Sandbox, reporter: Reporter, again: bool
    ) -> None:
        self._benchmark = benchmark
        self._judge = judge
        self._reporter = reporter
        self._again = again
        self.executed = False
        self._kept = runs.KeptData(cache_dir() / "references")
        found = judge.capabilities()
        name = benchmark.environment
        packages = environments.find(name).identity if name else ""
        self._here = [FORMAT, platform.node(), found.kind, found.tier, found.python, packages]
        if found.image:
            self._here.append(found.image)

    def add_expected_outputs(self) -> tuple[list[Problem], dict[str, str]]:
        """Return all problems with expected values filled in, and why that failed, by task.

        Expected values that the benchmark gives are not changed.
        """
        wanted = [
            p for p in self._benchmark.problems if p.tests.cases and not p.tests.cases.expected
        ]
        found: dict[str, Cases] = {}
        failed: dict[str, str] = {}
        missing = []
        for problem in wanted:
            if cases := self._cached_cases(problem):
                found[problem.task_id] = cases
            else:
                missing.append(problem)
        keys = {p.task_id: self._key("outputs", p) for p in missing}
        self.executed |= bool(missing)
        untimed = replace(self._benchmark.limits, call_cpu_s=0.0)
        jobs = [replace(self._job(p), limits=untimed) for p in missing]
        for done, (verdict, cases) in enumerate(self._judge.outputs(jobs), 1):
            self._reporter.preparing(
                "running the reference solutions, once per machine:", done, len(missing)
            )
            if cases is None:
                failed[verdict.task_id] = f"{verdict.reason}: {verdict.detail}"
                continue
            found[verdict.task_id] = cases
            self._kept.put(
                keys[verdict.task_id],
                {"expected": cases.expected, "digest": cases.digest, "slowest_s": cases.slowest_s},
            )
        return [_with_cases(p, found.get(p.task_id)) for p in self._benchmark.problems], failed

    def measure(self, problems: list[Problem]) -> dict[str, _Measured]:
        """Return the outcome of each reference that has tests, by task."""
        found: dict[str, _Measured] = {}
        missing = []
        for problem in problems:
            if problem.tests.cases and not problem.tests.cases.expected:
                continue
            if not problem.reference:  # the benchmark has none, so nothing is known about the task
                continue
            kept = None if self._again else self._kept.get(self._key(VERDICT, problem))
            if kept is None:
                missing.append(problem)
            else:
                found[problem.task_id] = codec.from_json(_Measured, kept)
        same = self._group(missing)
        first = {problems[0].task_id: key for key, problems in same.items()}
        self.executed |= bool(missing)
        verdicts = judge_jobs(self._judge, [self._job(one) for one, *_ in same.values()])
        for done, verdict in enumerate(verdicts, 1):
            self._reporter.preparing(
                "checking the reference solutions, once per machine:", done, len(same)
            )
            failure = "" if verdict.status == "pass" else f"{verdict.reason}: {verdict.detail}"
            one = _Measured(failure, verdict.wall_s, verdict.cpu_s)
            key = first[verdict.task_id]
            found |= {problem.task_id: one for problem in same[key]}
            if verdict.status != "invalid":
                self._kept.put(key, codec.to_json(one))
        return found

    def _group(self, problems: list[Problem]) -> dict[str, list[Problem]]:
        """Return the problems by the key of their reference: equal ones are judged once."""
        found: dict[str, list[Problem]] = {}
        for problem in problems:
            found.setdefault(self._key(VERDICT, problem), []).append(problem)
        return found

    def _cached_cases(self, problem: Problem) -> Cases | None:
        outputs = None if self._again else self._kept.get(self._key("outputs", problem))
        if outputs is None or problem.tests.cases is None:
            return None
        return replace(problem.tests.cases, **outputs)

    def _key(self, kind: str, problem: Problem) -> str:
        conditions = [codec.to_json(self._benchmark.limits), tests_digest(problem.tests)]
        return codec.digest([kind, self._here, conditions, problem.reference])

    def _job(self, problem: Problem) -> Job:
        benchmark = self._benchmark
        return Job(
            task_id=problem.task_id,
            sample=0,
            program=Program(problem.reference, "reference"),
            tests=problem.tests,
            limits=benchmark.limits,
            imports=benchmark.imports,
            environment=benchmark.environment,
        )


def _with_cases(problem: Problem, cases: Cases | None) -> Problem:
    return replace(problem, tests=replace(problem.tests, cases=cases)) if cases else problem
