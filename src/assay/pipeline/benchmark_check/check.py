"""Check a benchmark: run its references, try programs that solve nothing, read its prompts."""

from __future__ import annotations

from collections.abc import Iterator

from assay.errors import UsageError
from assay.judging import references
from assay.pipeline.benchmark_check.findings import KINDS, BenchmarkCheck, BenchmarkFinding
from assay.pipeline.benchmark_check.prompts import find_in_prompts, list_prompts
from assay.pipeline.benchmark_check.trials import Repeated, repeat_references, try_nothing
from assay.pipeline.config import JudgeConfig
from assay.pipeline.judging import check_workers, open_sandbox, report_python, select_problems
from assay.progress import Reporter

MOST_ROUNDS = 100


def check_benchmark(config: JudgeConfig, repeat: int, reporter: Reporter) -> BenchmarkCheck:
    """Return everything that is wrong with a benchmark, or looks wrong.

    Cached verdicts are not used.
    """
    check_workers(config)
    if not 1 <= repeat <= MOST_ROUNDS:
        raise UsageError(f"--repeat {repeat}: must be at least 1 and at most {MOST_ROUNDS}.")
    benchmark = select_problems(config, reporter).benchmark
    judge = open_sandbox(config, benchmark, reporter)
    try:
        report_python(config, benchmark, judge.capabilities(), reporter)
        checked = references.check(benchmark, judge, reporter, again=True)
        repeated = repeat_references(checked, judge, repeat, reporter)
        findings = [
            *_judge_references(repeated, repeat),
            *try_nothing(checked.benchmark, judge, reporter),
            *find_in_prompts(list_prompts(checked.benchmark)),
        ]
    finally:
        judge.close()
    problems = benchmark.problems
    order = {problem.task_id: number for number, problem in enumerate(problems)}
    kinds = list(KINDS)
    findings.sort(key=lambda one: (kinds.index(one.kind), order[one.task_id]))
    return BenchmarkCheck(
        benchmark=benchmark.name,
        version=benchmark.version,
        data_sha256=benchmark.data_sha256,
        problems=len(problems),
        references=sum(bool(problem.reference) for problem in problems),
        references_passed=sum(count == repeat for count in repeated.passed.values()),
        shared=sum(problem.tests.integrity == "shared" for problem in problems),
        repeat=repeat,
        findings=tuple(findings),
    )


def _judge_references(repeated: Repeated, repeat: int) -> Iterator[BenchmarkFinding]:
    for task_id, failure in repeated.failures.items():
        passed = repeated.passed.get(task_id, 0)
        if passed:
            yield BenchmarkFinding(
                "flaky", task_id, f"passed {passed} of {repeat} times; {failure}"
            )
        else:
            yield BenchmarkFinding("reference-fails", task_id, failure)
