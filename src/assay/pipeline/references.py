"""Run reference solutions: they give expected outputs and show which tasks can pass here."""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace

from assay import codec, runs, sandbox
from assay.datasets import cache_dir
from assay.progress import Reporter
from assay.protocol import tests_digest
from assay.sandbox.environments import store as environments
from assay.types import Benchmark, Cases, Job, Problem, Program

FORMAT = 4  # of the cached data; raise it when ``plain`` or ``digests`` change too


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
    failing, seconds = references.find_failures(complete)
    unscorable |= failing
    if references.executed:
        judge.close()  # a worker that ran references never runs another program
    benchmark = replace(benchmark, problems=tuple(complete))
    order = [p.task_id for p in benchmark.problems if p.task_id in unscorable]
    return CheckedBenchmark(benchmark, {task_id: unscorable[task_id] for task_id in order}, seconds)


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
        jobs = (replace(self._job(p), limits=untimed) for p in missing)
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

    def find_failures(self, problems: list[Problem]) -> tuple[dict[str, str], dict[str, float]]:
        """Return why references fail, and how long each takes, by task."""
        failed: dict[str, str] = {}
        seconds: dict[str, float] = {}
        missing = []

        def note(task_id: str, failure: str, wall_s: float) -> None:
            seconds[task_id] = wall_s
            if failure:
                failed[task_id] = failure

        for problem in problems:
            if problem.tests.cases and not problem.tests.cases.expected:
                continue
            kept = None if self._again else self._kept.get(self._key("verdict", problem))
            if kept is None:
                missing.append(problem)
            else:
                note(problem.task_id, *kept)
        keys = {p.task_id: self._key("verdict", p) for p in missing}
        self.executed |= bool(missing)
        verdicts = self._judge.judge(self._job(p) for p in missing)
        for done, verdict in enumerate(verdicts, 1):
            self._reporter.preparing(
                "checking the reference solutions, once per machine:", done, len(missing)
            )
            failure = "" if verdict.status == "pass" else f"{verdict.reason}: {verdict.detail}"
            note(verdict.task_id, failure, verdict.wall_s)
            if verdict.status != "invalid":
                self._kept.put(keys[verdict.task_id], [failure, verdict.wall_s])
        return failed, seconds

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
