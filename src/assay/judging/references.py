"""Run reference solutions: they give expected outputs and show which tasks can pass here."""

from __future__ import annotations

import contextlib
import math
import platform
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass, replace

from assay import runs, sandbox
from assay.data import codec
from assay.data.failures import explain_failure
from assay.datasets import cache_dir
from assay.judging.answers import judge_jobs
from assay.judging.job import task_of
from assay.progress import Reporter
from assay.protocol import tests_digest
from assay.sandbox.environments import store as environments
from assay.types import Benchmark, Cases, Job, Problem, Program, TimeRule, Verdict
from assay.work import machine, run_in_background

FORMAT = 5  # of the cached data; raise it when ``plain`` or ``digests`` change too
VERDICT = "timed verdict"  # earlier versions kept verdicts without CPU time, as "verdict"
SLOW_S = 20.0  # a reference that takes longer is judged while samples of other tasks are
KEEP_FAILURE_S = 7 * 86400.0  # then a reference that failed is judged again
LEAST_WATCH_S = 0.5  # to find out whether the machine is busy
AGES = ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute"))
OpenSandbox = Callable[[], sandbox.Sandbox]


@dataclass(frozen=True, slots=True)
class CheckedBenchmark:
    """A benchmark ready to judge with, and the tasks whose own reference does not pass here."""

    benchmark: Benchmark
    unscorable: dict[str, str]
    seconds: dict[str, float]  # wall time to judge each reference, by task
    late: LateReferences | None = None  # those that still run

    def is_pending(self, task_id: str) -> bool:
        """Return whether a task's reference is still being judged."""
        return self.late is not None and task_id in self.late.pending

    def wait(self) -> None:
        """Wait until all references are judged. ``unscorable`` is complete then."""
        if self.late is not None:
            self.unscorable.update(self.late.wait())

    def close(self) -> None:
        """Stop what still runs."""
        if self.late is not None:
            self.late.close()


def check(
    benchmark: Benchmark,
    judge: sandbox.Sandbox,
    reporter: Reporter,
    *,
    again: bool = False,
    open_late: OpenSandbox | None = None,
) -> CheckedBenchmark:
    """Run every reference solution, unless its outcome is cached on this machine.

    With ``open_late``, a slow one is judged in a sandbox of its own, while samples of other tasks
    are. That needs a benchmark whose limits do not depend on the times of references.
    """
    references = _References(benchmark, judge, reporter, again)
    complete, unscorable = references.add_expected_outputs()
    postpone = open_late is not None and benchmark.time_rule is None
    measured, slow = references.measure(complete, SLOW_S if postpone else math.inf)
    unscorable |= {task_id: one.failure for task_id, one in measured.items() if one.failure}
    if references.executed:
        judge.close()  # a worker that ran references never runs another program
    cpu_s = _cpu_limits(benchmark, measured)
    benchmark = replace(benchmark, problems=tuple(complete), cpu_s=cpu_s)
    seconds = {task_id: one.wall_s for task_id, one in measured.items()}
    order = [p.task_id for p in benchmark.problems if p.task_id in unscorable]
    unscorable = {task_id: unscorable[task_id] for task_id in order}
    if ages := references.ages_s:
        failures = ", ".join(f"{name} ({describe_age(age_s)})" for name, age_s in ages.items())
        reporter.note(f"unscorable by an earlier check: {failures}; --check-references repeats it")
    late = LateReferences(references, slow, open_late) if slow and open_late else None
    return CheckedBenchmark(benchmark, unscorable, seconds, late)


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
    when_s: float = 0.0  # of a failure, since 1970; 0: by an earlier version, perhaps under load


def describe_age(seconds: float) -> str:
    """Return how long ago something was, in its largest unit."""
    for size, name in AGES:
        if (count := int(seconds // size)) > 0:
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"


class LateReferences:
    """The references of a few tasks, judged in a thread while samples of other tasks are."""

    def __init__(
        self, references: _References, slow: dict[str, list[Problem]], open_sandbox: OpenSandbox
    ) -> None:
        self._references, self._slow, self._open = references, slow, open_sandbox
        self.pending = {p.task_id for problems in slow.values() for p in problems}
        self._sandbox: sandbox.Sandbox | None = None
        self._closed = threading.Event()
        # Not an executor: Python waits for those at its end, after a second Ctrl-C too.
        self._failed: futures.Future[dict[str, str]] = futures.Future()
        run_in_background(self._judge_all)

    def wait(self) -> dict[str, str]:
        """Return why references fail, by task."""
        return self._failed.result()

    def close(self) -> None:
        self._closed.set()
        if self._sandbox is not None:
            self._sandbox.close()
        futures.wait([self._failed])

    def _judge_all(self) -> None:
        try:
            self._failed.set_result(self._list_failures())
        except BaseException as error:
            self._failed.set_exception(error)

    def _list_failures(self) -> dict[str, str]:
        failed: dict[str, str] = {}
        self._sandbox = self._open()
        with contextlib.closing(self._sandbox):
            for key, problems in self._slow.items():
                if self._closed.is_set():
                    break
                one = self._references.judge_alone(self._sandbox, {key: problems})[key]
                if one.failure:
                    failed |= {p.task_id: one.failure for p in problems}
                else:
                    self.pending -= {p.task_id for p in problems}
        return failed


class _References:
    """The references of a benchmark in one sandbox, and what is cached about them."""

    def __init__(
        self, benchmark: Benchmark, judge: sandbox.Sandbox, reporter: Reporter, again: bool
    ) -> None:
        self._benchmark = benchmark
        self._judge = judge
        self._reporter = reporter
        self._again = again
        self.executed = False
        self.ages_s: dict[str, float] = {}  # of cached failures, by task
        self._kept = runs.KeptData(cache_dir() / "references")
        about = judge.capabilities()
        name = benchmark.environment
        packages = environments.find(name).identity if name else ""
        self._here = [FORMAT, platform.node(), about.kind, about.tier, about.python, packages]
        if about.image:
            self._here.append(about.image)

    def add_expected_outputs(self) -> tuple[list[Problem], dict[str, str]]:
        """Return all problems with expected values filled in, and why that failed, by task.

        Expected values that the benchmark gives are not changed.
        """
        outputs_of: dict[str, Cases] = {}
        missing: dict[str, Problem] = {}
        for problem in self._benchmark.problems:
            if not problem.tests.cases or problem.tests.cases.expected:
                continue
            outputs = None if self._again else self._kept.get(self._key("outputs", problem))
            if outputs is None:
                missing[problem.task_id] = problem
            else:
                outputs_of[problem.task_id] = replace(problem.tests.cases, **outputs)
        self.executed |= bool(missing)
        untimed = replace(self._benchmark.limits, call_cpu_s=0.0)
        jobs = {name: replace(self._job(p), limits=untimed) for name, p in missing.items()}
        failed: dict[str, str] = {}

        def run(jobs: list[Job]) -> Iterator[None]:
            for verdict, cases in self._judge.outputs(jobs):
                name = verdict.task_id
                if cases is None:
                    failed[name] = describe_failure(verdict)
                else:
                    failed.pop(name, None)
                    outputs_of[name] = cases
                    expected = {"expected": cases.expected, "digest": cases.digest}
                    key = self._key("outputs", missing[name])
                    self._kept.put(key, {**expected, "slowest_s": cases.slowest_s})
                yield

        for done, _ in enumerate(run(list(jobs.values())), 1):
            self._reporter.preparing(
                "running the reference solutions, once per machine:", done, len(missing)
            )
        for name in list(failed):  # again, alone: another program may be the cause
            list(run([jobs[name]]))
        complete = [
            replace(p, tests=replace(p.tests, cases=outputs_of.get(p.task_id, p.tests.cases)))
            for p in self._benchmark.problems
        ]
        return complete, failed

    def measure(
        self, problems: list[Problem], slow_s: float
    ) -> tuple[dict[str, _Measured], dict[str, list[Problem]]]:
        """Return the outcome of each reference that has tests, by task.

        Also return those that take more than ``slow_s``, by the key of their reference. A reference
        that fails is judged again after all others, alone, and only this outcome counts.
        """
        outcomes: dict[str, _Measured] = {}
        missing = []
        for problem in problems:
            if problem.tests.cases and not problem.tests.cases.expected:
                continue
            if not problem.reference:  # the benchmark has none, so nothing is known about the task
                continue
            outcome = self._cached(problem)
            if outcome is None:
                missing.append(problem)
            else:
                outcomes[problem.task_id] = outcome
        same: dict[str, list[Problem]] = {}  # equal references are judged once
        for problem in missing:
            same.setdefault(self._key(VERDICT, problem), []).append(problem)
        keys = {problems[0].task_id: key for key, problems in same.items()}
        self.executed |= bool(missing)
        jobs = [_shorten(self._job(one), slow_s) for one, *_ in same.values()]
        failed: dict[str, list[Problem]] = {}
        slow: dict[str, list[Problem]] = {}
        for done, verdict in enumerate(judge_jobs(self._judge, jobs), 1):
            self._reporter.preparing(
                "checking the reference solutions, once per machine:", done, len(same)
            )
            key = keys[verdict.task_id]
            if verdict.status == "pass":
                one = _Measured("", verdict.wall_s, verdict.cpu_s)
                outcomes |= {problem.task_id: one for problem in same[key]}
                self._kept.put(key, codec.to_json(one))
            elif slow_s < math.inf and verdict.reason in ("timeout", "sandbox-error"):
                slow[key] = same[key]
            else:
                failed[key] = same[key]
        for key, one in self.judge_alone(self._judge, failed).items():
            outcomes |= {problem.task_id: one for problem in failed[key]}
        return outcomes, slow

    def judge_alone(
        self, judge: sandbox.Sandbox, groups: dict[str, list[Problem]]
    ) -> dict[str, _Measured]:
        """Return the outcomes of references that are judged one at a time, by their keys.

        A failure on a busy machine counts for this run, but it is not cached.
        """
        if not groups:
            return {}
        started, idle_s = time.monotonic(), machine.idle_s()
        verdicts: dict[str, Verdict] = {}
        for key, problems in groups.items():
            (verdicts[key],) = judge_jobs(judge, [self._job(problems[0])])
        time.sleep(max(0.0, LEAST_WATCH_S - (time.monotonic() - started)))
        wall_s, idle_now_s = time.monotonic() - started, machine.idle_s()
        idle_s = None if idle_s is None or idle_now_s is None else idle_now_s - idle_s
        busy = machine.is_busy(wall_s, idle_s, sum(v.cpu_s for v in verdicts.values()))
        outcomes: dict[str, _Measured] = {}
        for key, verdict in verdicts.items():
            failure = "" if verdict.status == "pass" else describe_failure(verdict)
            when_s = time.time() if failure else 0.0
            outcomes[key] = _Measured(failure, verdict.wall_s, verdict.cpu_s, when_s)
            if not failure or not (busy or verdict.status == "invalid"):
                self._kept.put(key, codec.to_json(outcomes[key]))
        return outcomes

    def _cached(self, problem: Problem) -> _Measured | None:
        """Return what is cached about a reference. A failure says how old it is."""
        data = None if self._again else self._kept.get(self._key(VERDICT, problem))
        if data is None:
            return None
        outcome = codec.from_json(_Measured, data)
        if not outcome.failure:
            return outcome
        age_s = time.time() - outcome.when_s
        if not 0 <= age_s < KEEP_FAILURE_S:
            return None
        self.ages_s[problem.task_id] = age_s
        why = (
            f"{outcome.failure} (judged {describe_age(age_s)}; --check-references judges it again)"
        )
        return replace(outcome, failure=why)

    def _key(self, kind: str, problem: Problem) -> str:
        conditions = [codec.to_json(self._benchmark.limits), tests_digest(problem.tests)]
        return codec.digest([kind, self._here, conditions, problem.reference])

    def _job(self, problem: Problem) -> Job:
        # Limits that follow from the references' own times are not known yet.
        task = replace(task_of(self._benchmark, problem), limits=self._benchmark.limits)
        return task.make_job(Program(problem.reference, "reference"))


def describe_failure(verdict: Verdict) -> str:
    """Return why a reference fails. An assertion has the expected value."""
    test, words = verdict.failing_test, explain_failure(verdict)
    where = f" ({test})" if test.startswith("assert ") and test not in words else ""
    return f"{verdict.reason}: {words}{where}"


def _shorten(job: Job, most_s: float) -> Job:
    limits = job.limits
    return replace(
        job,
        limits=replace(limits, cpu_s=min(most_s, limits.cpu_s), wall_s=min(most_s, limits.wall_s)),
    )
