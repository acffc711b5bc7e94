"""Bring texts to verdicts next to the sandbox's workers: extract, look up, execute.

``TextStage`` is the road. A kind of stage says what the text of an item is and how a verdict is
answered. ``SampleStage`` is that of a run.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

from assay.extract.workers import ExtractionRequest, Extractor
from assay.judging.answers import Computation, decide
from assay.judging.attempts import Attempts, begin
from assay.judging.job import JudgeTask
from assay.runs import JudgedLines, VerdictCache, encode_judged
from assay.sandbox import PAUSE, Item, Sandbox
from assay.sandbox.environments.interpreters import for_extraction
from assay.types import Cases, Job, Program, PromptForm, Verdict

WAIT_S, LOOK_EVERY_S = 60.0, 0.02  # for another process that executes the same program


P = TypeVar("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class JudgeText:
    """A text, and everything that its verdict depends on."""

    task: JudgeTask
    text: str
    form: PromptForm = "chat"
    seed: str = ""  # for tests with random inputs
    truncated: bool = False  # it was cut off at the token limit


@dataclass(frozen=True, slots=True)
class TextStage(ABC, Generic[P, R]):
    """Work that answers every text with its verdict. A cache saves identical programs."""

    environment: str = ""  # of all tasks
    cache: VerdictCache | None = None
    workers: int = 0  # that extract; 0: one per core

    @abstractmethod
    def read(self, item: Item[JudgeTask, P]) -> JudgeText:
        """Return the text of an item."""

    @abstractmethod
    def answer(
        self, payload: P, verdict: Verdict, programs: Sequence[Program], *, cached: bool
    ) -> R:
        """Return the answer. ``programs`` are those that were judged for the text, in order."""

    @abstractmethod
    def give_up(self, context: JudgeTask, payload: P, why: str) -> R:
        """Return the answer for a text that the harness could not judge."""

    def run(
        self,
        sandbox: Sandbox,
        items: Iterator[Item[JudgeTask, P] | None],
        answer: Callable[[int, Any], None],
    ) -> None:
        interpreter = for_extraction(sandbox.capabilities(), self.environment)
        with Extractor(self.workers, interpreter=interpreter) as extractor:
            _Texts(self, extractor, answer).judge(sandbox, items)


class SampleText(NamedTuple):
    """The text of a sample."""

    sample: int
    text: str
    truncated: bool  # it was cut off at the token limit


class Judged(NamedTuple):
    """The verdict on a sample with its lines for the run's folder."""

    lines: JudgedLines
    cached: bool = False  # the program was not executed for this sample


@dataclass(frozen=True, slots=True)
class SampleStage(TextStage[SampleText, Judged]):
    """The stage of a run: it answers every sample with the lines that record its verdict."""

    form: PromptForm = "chat"
    seed: str = ""

    def read(self, item: Item[JudgeTask, SampleText]) -> JudgeText:
        sample = item.payload
        return JudgeText(item.context, sample.text, self.form, self.seed, sample.truncated)

    def answer(
        self, payload: SampleText, verdict: Verdict, programs: Sequence[Program], *, cached: bool
    ) -> Judged:
        return Judged(encode_judged(replace(verdict, sample=payload.sample), programs), cached)

    def give_up(self, context: JudgeTask, payload: SampleText, why: str) -> Judged:
        key = context.problem.task_id, payload.sample
        return Judged(encode_judged(Verdict(*key, "invalid", "sandbox-error", why, rule="none")))


class _Texts(Generic[P, R]):
    """The texts of a stage. The sample number of a job is the tag of its item."""

    def __init__(
        self,
        stage: TextStage[P, R],
        extractor: Extractor,
        answer: Callable[[int, R | None], None],
    ) -> None:
        self._stage, self._extractor, self._answer = stage, extractor, answer
        self._open: dict[int, tuple[P, Attempts]] = {}
        # Programs being executed, by cache key, with the samples that wait for the same verdict.
        self._executing: dict[str, list[Job]] = {}
        self._keys: dict[int, str] = {}
        self._cache_lock = threading.Lock()
        # Uncut forms, and programs that another process is executing.
        self._second_jobs: list[Job] = []
        self._computations: dict[int, Computation] = {}  # that are being executed
        self._calls: list[Job] = []  # with arguments that were computed
        self._last = False

    def judge(self, sandbox: Sandbox, items: Iterator[Item[JudgeTask, P] | None]) -> None:
        """Execute the programs whose verdict is not known yet."""
        self._execute(sandbox, self._undecided(self._extract(items)))
        # They are few, so they are judged last and need no second queue.
        self._last = True
        while self._second_jobs or self._calls:
            again, self._second_jobs = self._second_jobs, []
            calls, self._calls = self._calls, []
            self._execute(sandbox, chain(calls, self._undecided(again)))

    def _execute(self, sandbox: Sandbox, jobs: Iterable[Job]) -> None:
        for verdict, cases in sandbox.outputs(jobs):
            self._executed(verdict, cases)

    def _extract(self, items: Iterator[Item[JudgeTask, P] | None]) -> Iterator[Job]:
        """Yield the program of each text. A text without a program fails here."""
        for (item, text), extraction in self._extractor.stream(self._requests(items)):
            seed, truncated = text.seed, text.truncated
            attempts, first = begin(text.task, extraction, item.tag, seed=seed, truncated=truncated)
            self._open[item.tag] = item.payload, attempts
            if isinstance(first, Job):
                yield first
            else:
                self._finish(first, cached=False)

    def _requests(
        self, items: Iterator[Item[JudgeTask, P] | None]
    ) -> Iterator[tuple[tuple[Item[JudgeTask, P], JudgeText], ExtractionRequest] | None]:
        for item in items:
            if item is PAUSE:
                yield PAUSE
            else:
                text = self._stage.read(item)
                yield (item, text), ExtractionRequest(text.text, text.task.problem, text.form)

    def _undecided(self, jobs: Iterable[Job]) -> Iterator[Job]:
        """Yield the programs to execute. Settle what needs no execution."""
        for job in jobs:
            step = decide(job)
            if isinstance(step, Verdict):
                self._settle(step, cached=False)
            elif self._is_known(job):
                continue
            elif isinstance(step, Computation):
                self._computations[job.sample] = step
                yield step.job
            else:
                yield step

    def _is_known(self, job: Job) -> bool:
        """Return whether the verdict is cached, or the same program is being executed."""
        cache = self._stage.cache
        if cache is None:
            return False
        key = cache.key(job)
        if self._last:
            self._wait_for_others(cache, key)
        with self._cache_lock:
            if key in self._executing:
                self._executing[key].append(job)
                return True
            claimed = cache.claim(key)
            verdict = cache.get(key, job)
            if verdict is None and (claimed or self._last):
                self._executing[key] = []
                self._keys[job.sample] = key
                return False
        if verdict is None:
            self._second_jobs.append(job)
            self._answer(job.sample, None)
            return True
        if claimed:
            cache.release(key)
        self._settle(verdict, cached=True)
        return True

    def _wait_for_others(self, cache: VerdictCache, key: str) -> None:
        """Wait until no other process executes the program, but not for ever."""
        deadline = time.monotonic() + WAIT_S
        while not cache.claim(key) and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_S)

    def _executed(self, verdict: Verdict, cases: Cases | None) -> None:
        """Settle the verdict, also for the samples that have the same program."""
        if computation := self._computations.pop(verdict.sample, None):
            step = computation.finish(verdict, cases)
            if isinstance(step, Job):
                self._calls.append(step)
                self._answer(step.sample, None)
                return
            verdict = step
        self._settle(verdict, cached=False)
        if self._stage.cache is None:
            return
        key = self._keys.pop(verdict.sample)
        self._stage.cache.put(key, verdict)  # first, so that others find it or wait for it
        self._stage.cache.release(key)
        with self._cache_lock:
            waiting = self._executing.pop(key)
        for job in waiting:
            same = replace(verdict, task_id=job.task_id, sample=job.sample, rule=job.program.rule)
            self._settle(same, cached=True)

    def _settle(self, verdict: Verdict, *, cached: bool) -> None:
        """Finish the sample, unless another form of its program is judged first."""
        _, attempts = self._open[verdict.sample]
        step = attempts.settle(verdict)
        if isinstance(step, Job):
            self._second_jobs.append(step)
            self._answer(step.sample, None)
        else:
            self._finish(step, cached=cached)

    def _finish(self, verdict: Verdict, *, cached: bool) -> None:
        payload, attempts = self._open.pop(verdict.sample)
        answer = self._stage.answer(payload, verdict, attempts.programs, cached=cached)
        self._answer(verdict.sample, answer)
