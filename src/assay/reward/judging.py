"""Judge batches of completions: extract programs, execute each once, count passed tests."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from assay.api.opening import load_benchmark
from assay.errors import UsageError
from assay.extract.workers import Extraction, ExtractionRequest, Extractor
from assay.judging import JudgeTask, judge_extracted, judge_jobs, references, tasks_of
from assay.judging.wire import count_cases
from assay.progress import Silent
from assay.reward.sharing import Batcher
from assay.reward.tests import BenchmarkTask, split, tests_key
from assay.sandbox import Sandbox, open_sandbox
from assay.sandbox.environments.interpreters import choose, for_extraction
from assay.types import Job, Limits, Problem, PromptForm, Verdict

if TYPE_CHECKING:
    from assay.reward.rewards import Reward

Text = tuple[JudgeTask, Extraction]
# Reasons of completions that have no program which compiles and defines the entry point.
WITHOUT_PROGRAM = frozenset(("no-code", "unparsable", "extraction", "too-long", "syntax"))


class ProgramJudge(Protocol):
    """A judge of a benchmark's programs, such as ``assay.Judge``."""

    def judge(self, programs: Iterable[tuple[str, str]]) -> list[Verdict]:
        """Return a verdict for every pair of a task id and a program, in their order."""
        ...


@dataclass(frozen=True, slots=True)
class Score:
    """The reward of one completion, from 0 to 1, and the verdict that it follows from."""

    value: float | None  # None: the machine could not judge it
    verdict: Verdict
    passed: int  # tests
    total: int


def reward_of(
    verdict: Verdict, passed: int, total: int, *, partial: bool, format_share: float = 0.0
) -> float | None:
    """Return the reward of a verdict, from 0 to 1, or None if the machine could not judge it."""
    if verdict.status == "invalid":
        return None
    if verdict.status == "pass":
        return 1.0
    # A program that fails although all its tests passed has done something else that is forbidden.
    share = passed / total if partial and passed < total else 0.0
    has_program = verdict.reason not in WITHOUT_PROGRAM
    return format_share * has_program + (1 - format_share) * share


class CompletionJudge:
    """A judge of completions of any tasks, in batches. Threads may share it.

    Programs are executed in a sandbox of this process, which stays warm, or by the judge that the
    reward names. That one has only the tests of a benchmark.
    """

    def __init__(self, reward: Reward) -> None:
        self._reward = reward
        self._judge: ProgramJudge | None = None
        self._sandbox: Sandbox | None = None
        judge = reward.judge
        self._opened_here = judge is not None and not hasattr(judge, "judge")
        if judge is not None:
            self._judge = judge() if self._opened_here else judge  # type: ignore[operator, assignment]
            interpreter = choose(reward.python).path
        else:
            self._sandbox = open_sandbox(
                reward.sandbox, reward.workers, reward.sandbox_tier, reward.python
            )
            interpreter = for_extraction(self._sandbox.capabilities())
        self._extractor = Extractor(reward.workers, interpreter=interpreter)
        self._turn = threading.Lock()
        self._tasks: dict[str, dict[str, JudgeTask]] = {}  # by benchmark
        self._batcher = Batcher(self._score, self._turn)

    def task(self, wanted: BenchmarkTask | Problem) -> JudgeTask:
        """Return a task. Its benchmark is loaded when it is first needed."""
        task = self._own(wanted) if isinstance(wanted, Problem) else self._of_benchmark(wanted)
        if task.problem.tests.integrity == "shared" and not self._reward.allow_shared:
            raise UsageError(
                f"{task.problem.task_id}: its tests share the program's interpreter, so a pass can "
                "be forged. Leave it out, or set allow_shared."
            )
        return task

    def score(
        self, tasks: Sequence[JudgeTask], completions: Sequence[str], form: PromptForm
    ) -> Sequence[Score]:
        """Return the score of each completion, in their order."""
        return self._batcher.run(
            [
                (task, ExtractionRequest(text, task.problem, form))
                for task, text in zip(tasks, completions, strict=True)
            ]
        )

    def close(self) -> None:
        """Stop what was opened here: the sandbox and everything that runs in it, or the judge."""
        with self._turn:
            self._extractor.close()
            opened = self._judge if self._opened_here else self._sandbox
            close = getattr(opened, "close", None)
            if close is not None:
                close()

    def _own(self, problem: Problem) -> JudgeTask:
        if self._sandbox is None:
            raise UsageError(
                "tests: this judge has only the tests of a benchmark. Leave out judge= to use "
                "your own tests."
            )
        return JudgeTask(problem, self._reward.limits or Limits())

    def _of_benchmark(self, wanted: BenchmarkTask) -> JudgeTask:
        with self._turn:
            if wanted.benchmark not in self._tasks:
                self._tasks[wanted.benchmark] = self._load(wanted.benchmark)
        tasks = self._tasks[wanted.benchmark]
        if wanted.task_id not in tasks:
            raise UsageError(
                f"{wanted.task_id}: is not a task of {wanted.benchmark}. Give one of its task ids."
            )
        return tasks[wanted.task_id]

    def _load(self, name: str) -> dict[str, JudgeTask]:
        benchmark = load_benchmark(name, data_dir=self._reward.data_dir)
        if limits := self._reward.limits:
            benchmark = replace(benchmark, limits=limits, time_rule=None)
        unscorable = getattr(self._judge, "unscorable", {})
        if self._sandbox is not None:
            checked = references.check(benchmark, self._sandbox, Silent())
            benchmark, unscorable = checked.benchmark, checked.unscorable
        return {
            task_id: replace(task, unscorable=unscorable.get(task_id, ""))
            for task_id, task in tasks_of(benchmark).items()
        }

    def _score(self, requests: Sequence[tuple[JudgeTask, ExtractionRequest]]) -> list[Score]:
        texts = list(self._extractor.in_order(requests))
        verdicts = judge_extracted(texts, self._execute)
        counted = self._count_assertions(texts, verdicts)
        settings, scores = self._reward, []
        for number, verdict in enumerate(verdicts):
            verdict, passed, total = counted.get(number) or (verdict, *count_cases(verdict))
            value = reward_of(
                verdict, passed, total,
                partial=settings.partial, format_share=settings.format_share,
            )  # fmt: skip
            scores.append(Score(value, verdict, passed, total))
        return scores

    def _count_assertions(
        self, texts: Sequence[Text], verdicts: Sequence[Verdict]
    ) -> dict[int, tuple[Verdict, int, int]]:
        """Return failed programs by position, with the number of assertions that they pass.

        One that could not be judged makes the verdict invalid.
        """
        if not self._reward.partial or self._sandbox is None:
            return {}
        jobs = {
            number: _part_jobs(*text)
            for number, (text, verdict) in enumerate(zip(texts, verdicts, strict=True))
            if _can_pass_some(verdict, text[1])
        }
        judged = iter(self._execute([job for parts in jobs.values() for job in parts]))
        counted = {}
        for number, parts in jobs.items():
            results = [next(judged) for _ in parts]
            if results:
                invalid = next((one for one in results if one.status == "invalid"), None)
                passed = sum(one.status == "pass" for one in results)
                counted[number] = invalid or verdicts[number], passed, len(results)
        return counted

    def _execute(self, jobs: Sequence[Job]) -> list[Verdict]:
        """Return the verdict on each job. Equal programs with equal tests are executed once.

        What the machine failed to judge is tried again as often as the reward says.
        """
        keys = [repr((job.task_id, job.program.code, tests_key(job.tests))) for job in jobs]
        verdicts: dict[str, Verdict] = {}
        for _ in range(1 + self._reward.retries):
            missing = {
                key: job
                for key, job in zip(keys, jobs, strict=True)
                if key not in verdicts or verdicts[key].status == "invalid"
            }
            if not missing:
                break
            numbered = [replace(job, sample=n) for n, job in enumerate(missing.values())]
            verdicts.update(zip(missing, self._run(numbered), strict=True))
        return [
            replace(verdicts[key], sample=job.sample) for key, job in zip(keys, jobs, strict=True)
        ]

    def _run(self, jobs: list[Job]) -> Sequence[Verdict]:
        """Return the verdict on each job, whose ``sample`` is its position."""
        if self._judge is not None:
            return self._judge.judge([(job.task_id, job.program.code) for job in jobs])
        assert self._sandbox is not None
        return sorted(judge_jobs(self._sandbox, jobs), key=lambda verdict: verdict.sample)


def _part_jobs(task: JudgeTask, extraction: Extraction) -> list[Job]:
    """Return a job per assertion, or none if the tests are not several assertions."""
    parts = split(task.problem.tests)
    if len(parts) < 2:
        return []
    return [task.make_job(extraction.program, tests=part) for part in parts]


def _can_pass_some(verdict: Verdict, extraction: Extraction) -> bool:
    """Report whether a failed program may pass some assertions.

    After a timeout nothing more is run: each assertion could need the limit again.
    """
    hopeless = ("timeout", "syntax")
    return verdict.status == "fail" and not extraction.reason and verdict.reason not in hopeless
