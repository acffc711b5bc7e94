"""Judge batches of completions: extract programs, execute each once, count passed tests."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from assay.api.opening import load_benchmark
from assay.errors import UsageError
from assay.extract.workers import Extraction, ExtractionRequest, Extractor
from assay.judging import JudgeTask, judge_extracted, tasks_of
from assay.reward.benches import Bench, SandboxBench
from assay.reward.sharing import Batcher
from assay.reward.tests import BenchmarkTask, split, tests_key
from assay.sandbox import Sandbox, open_sandbox
from assay.sandbox.environments.interpreters import choose, for_extraction
from assay.types import Job, Limits, Problem, PromptForm, Verdict

Pair = tuple["RewardAnswer", Extraction]


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Set how completions are judged."""

    partial: bool = False  # count passed tests also if the program fails
    allow_shared: bool = False  # tests that run in the program's interpreter
    retries: int = 1  # of programs that the machine failed to judge
    workers: int = 0
    sandbox: str = "process"
    sandbox_tier: str = "auto"
    python: str = ""  # version or path of the Python that judges; none: the default
    limits: Limits | None = None
    data_dir: str | Path | None = None


@dataclass(frozen=True, slots=True)
class RewardAnswer:
    """The completion of a task."""

    task: JudgeTask
    text: str
    form: PromptForm


@dataclass(frozen=True, slots=True)
class JudgedCompletion:
    """The verdict on a completion, and how many of its tests passed."""

    verdict: Verdict
    passed: int
    total: int


class CompletionJudge:
    """Judge completions of any tasks in batches. Threads may share it."""

    def __init__(self, settings: JudgeSettings, bench: Bench | None = None) -> None:
        """Judge at a bench, or in a sandbox of this process."""
        self._settings = settings
        if bench is None:
            sandbox = _open(settings)
            bench, interpreter = SandboxBench(sandbox), for_extraction(sandbox.capabilities())
        else:
            interpreter = choose(settings.python).path
        self._bench = bench
        self._extractor = Extractor(settings.workers, interpreter=interpreter)
        self._turn = threading.Lock()
        self._tasks: dict[str, dict[str, JudgeTask]] = {}  # by benchmark
        self._batcher = Batcher(self._judge, self._turn)

    def task(self, found: BenchmarkTask | Problem) -> JudgeTask:
        """Return a task. Its benchmark is loaded when it is first needed."""
        task = self._own(found) if isinstance(found, Problem) else self._of_benchmark(found)
        if task.problem.tests.integrity == "shared" and not self._settings.allow_shared:
            raise UsageError(
                f"{task.problem.task_id}: its tests share the program's interpreter, so a pass can "
                "be forged. Leave it out, or set allow_shared."
            )
        return task

    def judge(self, answers: Sequence[RewardAnswer]) -> Sequence[JudgedCompletion]:
        """Return the verdict on each completion, in their order."""
        return self._batcher.run(answers)

    def close(self) -> None:
        """Stop the sandbox and everything that runs in it."""
        with self._turn:
            self._extractor.close()
            self._bench.close()

    def _own(self, problem: Problem) -> JudgeTask:
        if not self._bench.any_tests:
            raise UsageError(
                "tests: this judge has only the tests of a benchmark. Leave out judge= to use "
                "your own tests."
            )
        return JudgeTask(problem, self._settings.limits or Limits())

    def _of_benchmark(self, found: BenchmarkTask) -> JudgeTask:
        with self._turn:
            if found.benchmark not in self._tasks:
                self._tasks[found.benchmark] = self._load(found.benchmark)
        tasks = self._tasks[found.benchmark]
        if found.task_id not in tasks:
            raise UsageError(
                f"{found.task_id}: is not a task of {found.benchmark}. Give one of its task ids."
            )
        return tasks[found.task_id]

    def _load(self, name: str) -> dict[str, JudgeTask]:
        benchmark = load_benchmark(name, data_dir=self._settings.data_dir)
        if self._settings.limits:
            benchmark = replace(benchmark, limits=self._settings.limits, time_rule=None)
        ready, unscorable = self._bench.prepare(benchmark)
        return {
            task_id: replace(task, unscorable=unscorable.get(task_id, ""))
            for task_id, task in tasks_of(ready).items()
        }

    def _judge(self, answers: Sequence[RewardAnswer]) -> list[JudgedCompletion]:
        requests = ((a, ExtractionRequest(a.text, a.task.problem, a.form)) for a in answers)
        pairs = list(self._extractor.in_order(requests))
        texts = [(answer.task, found) for answer, found in pairs]
        verdicts = judge_extracted(texts, self._execute)
        counted = self._count_assertions(pairs, verdicts) if self._settings.partial else {}
        return [
            counted.get(number) or JudgedCompletion(verdict, *count_cases(verdict))
            for number, verdict in enumerate(verdicts)
        ]

    def _count_assertions(
        self, pairs: Sequence[Pair], verdicts: Sequence[Verdict]
    ) -> dict[int, JudgedCompletion]:
        """Return failed programs by position, with the number of assertions that they pass."""
        jobs = {
            number: _part_jobs(pair)
            for number, (pair, verdict) in enumerate(zip(pairs, verdicts, strict=True))
            if self._bench.any_tests and _can_pass_some(verdict, pair[1])
        }
        counted = iter(self._execute([job for parts in jobs.values() for job in parts]))
        return {
            number: _count(verdicts[number], [next(counted) for _ in parts])
            for number, parts in jobs.items()
            if parts
        }

    def _execute(self, jobs: Sequence[Job]) -> list[Verdict]:
        """Return the verdict on each job. Equal programs with equal tests are executed once."""
        found: dict[str, Verdict] = {}
        for _ in range(1 + self._settings.retries):
            missing = {_key(job): job for job in jobs if _is_open(found.get(_key(job)))}
            if not missing:
                break
            numbered = [replace(job, sample=n) for n, job in enumerate(missing.values())]
            found.update(zip(missing, self._bench.judge(numbered), strict=True))
        return [replace(found[_key(job)], sample=job.sample) for job in jobs]


def count_cases(verdict: Verdict) -> tuple[int, int]:
    """Return how many tests passed, and of how many. Without cases, all tests are one."""
    total = sum(group[-1] for group in verdict.groups.values())
    if not total:
        return int(verdict.status == "pass"), 1
    return sum(group[0] for group in verdict.groups.values()), total


def _open(settings: JudgeSettings) -> Sandbox:
    return open_sandbox(settings.sandbox, settings.workers, settings.sandbox_tier, settings.python)


def _part_jobs(pair: Pair) -> list[Job]:
    """Return a job per assertion, or none if the tests are not several assertions."""
    answer, found = pair
    parts = split(answer.task.problem.tests)
    if len(parts) < 2:
        return []
    return [answer.task.make_job(found.program, tests=part) for part in parts]


def _can_pass_some(verdict: Verdict, found: Extraction) -> bool:
    """Report whether a failed program may pass some assertions.

    After a timeout nothing more is run: each assertion could need the limit again.
    """
    hopeless = ("timeout", "syntax")
    return verdict.status == "fail" and not found.reason and verdict.reason not in hopeless


def _count(verdict: Verdict, parts: Sequence[Verdict]) -> JudgedCompletion:
    """Return the verdict with the number of assertions passed. One not judged makes it invalid."""
    invalid = next((part for part in parts if part.status == "invalid"), None)
    return JudgedCompletion(
        invalid or verdict, sum(part.status == "pass" for part in parts), len(parts)
    )


def _key(job: Job) -> str:
    return repr((job.task_id, job.program.code, tests_key(job.tests)))


def _is_open(verdict: Verdict | None) -> bool:
    return verdict is None or verdict.status == "invalid"
