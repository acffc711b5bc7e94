"""Judge references and programs that solve nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.data.failures import explain_failure
from assay.judging import judge_jobs, task_of
from assay.judging.references import CheckedBenchmark
from assay.pipeline.benchmark_check.findings import BenchmarkFinding
from assay.progress import Reporter
from assay.sandbox import Sandbox
from assay.types import Benchmark, Job, Problem, Program, Tests, Verdict

EMPTY, NONE = "empty", "none"
FUNCTION = "def {name}(*args, **kwargs):\n    return None\n"
CLASS = "class {name}:\n    def __getattr__(self, _):\n        return lambda *a, **k: None\n"


@dataclass(frozen=True, slots=True)
class Repeated:
    """Count how often each reference passed, by task, and keep how it failed."""

    passed: dict[str, int]
    failures: dict[str, str]


def repeat_references(
    checked: CheckedBenchmark, judge: Sandbox, repeat: int, reporter: Reporter
) -> Repeated:
    """Judge all references until each was judged ``repeat`` times. The first time is over.

    Every round has another seed, for tests with random inputs.
    """
    benchmark = checked.benchmark
    problems = [p for p in benchmark.problems if p.reference and _is_complete(p.tests)]
    passed = {p.task_id: int(p.task_id not in checked.unscorable) for p in problems}
    failures = dict(checked.unscorable)
    jobs = [
        _job(benchmark, problem, sample, problem.reference, f"round {sample}")
        for sample in range(1, repeat)
        for problem in problems
    ]
    for done, verdict in enumerate(judge_jobs(judge, jobs), 1):
        reporter.preparing("judging the references again:", done, len(jobs))
        if verdict.status == "pass":
            passed[verdict.task_id] += 1
        else:
            failures.setdefault(verdict.task_id, f"{verdict.reason}: {explain_failure(verdict)}")
    judge.close()  # a worker that ran references never runs another program
    return Repeated(passed, failures)


def try_nothing(
    benchmark: Benchmark, judge: Sandbox, reporter: Reporter
) -> Iterator[BenchmarkFinding]:
    """Yield the problems that a program passes which solves nothing."""
    kinds: list[str] = []
    jobs: list[Job] = []
    for problem in benchmark.problems:
        if not _is_complete(problem.tests):
            continue
        for kind, code in ((EMPTY, ""), (NONE, none_program(problem.tests))):
            if code is not None:
                jobs.append(_job(benchmark, problem, len(jobs), code, ""))
                kinds.append(kind)
    found: dict[int, BenchmarkFinding] = {}
    for done, verdict in enumerate(judge_jobs(judge, jobs), 1):
        reporter.preparing("judging programs that solve nothing:", done, len(jobs))
        if verdict.status != "fail":
            found[verdict.sample] = _describe(kinds[verdict.sample], verdict)
    yield from dict.fromkeys(found[number] for number in sorted(found))


def _describe(kind: str, verdict: Verdict) -> BenchmarkFinding:
    if verdict.status == "pass":
        return BenchmarkFinding(f"passes-{kind}", verdict.task_id)
    return BenchmarkFinding("not-judged", verdict.task_id, f"{verdict.reason}: {verdict.detail}")


def none_program(tests: Tests) -> str | None:
    """Return a program that defines the entry point and returns None, or None without one."""
    name = tests.entry_point
    if tests.answer is not None or not name.isidentifier():
        return None
    is_class = bool(tests.adapter) and name[0].isupper()
    return (CLASS if is_class else FUNCTION).format(name=name)


def _is_complete(tests: Tests) -> bool:
    """Return whether it is known what the tests expect."""
    return tests.cases is None or bool(tests.cases.expected)


def _job(benchmark: Benchmark, problem: Problem, sample: int, code: str, seed: str) -> Job:
    return task_of(benchmark, problem).make_job(Program(code, "check"), sample, seed=seed)
