"""Judge jobs as a stage: their tests are the contexts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from assay.sandbox import PAUSE, Item, Sandbox
from assay.sandbox.host.verdicts import invalid
from assay.types import Cases, Job, Limits, Program, Tests, Verdict


class JobPayload(NamedTuple):
    """Hold a job without its tests."""

    task_id: str
    sample: int
    program: Program
    limits: Limits
    imports: tuple[str, ...]
    environment: str
    seed: str
    alone: bool


JobItem = Item[Tests, JobPayload]


def split_job(job: Job) -> tuple[Tests, JobPayload]:
    """Return a job as an item of a stage."""
    return job.tests, JobPayload(
        job.task_id,
        job.sample,
        job.program,
        job.limits,
        job.imports,
        job.environment,
        job.seed,
        job.alone,
    )


class _TaggedJobs:
    """Turn items into jobs whose sample number is the item's tag, since keys may occur twice."""

    def __init__(self, items: Iterator[JobItem | None]) -> None:
        self._items = items
        self._samples: dict[int, int] = {}

    def __iter__(self) -> Iterator[Job]:
        for item in self._items:
            if item is not PAUSE:
                self._samples[item.tag] = item.payload.sample
                yield _join(item.context, item.payload._replace(sample=item.tag))

    def restore(self, verdict: Verdict) -> Verdict:
        """Return the verdict with the job's own sample number."""
        return dataclasses.replace(verdict, sample=self._samples.pop(verdict.sample))


@dataclass(frozen=True, slots=True)
class JudgeStage:
    """Answer every job with its verdict."""

    def run(
        self,
        sandbox: Sandbox,
        items: Iterator[JobItem | None],
        answer: Callable[[int, Verdict | None], None],
    ) -> None:
        jobs = _TaggedJobs(items)
        for verdict in sandbox.judge(jobs):
            answer(verdict.sample, jobs.restore(verdict))

    def give_up(self, context: Tests, payload: JobPayload, why: str) -> Verdict:
        return _invalid(context, payload, why)


@dataclass(frozen=True, slots=True)
class OutputsStage:
    """Answer every job with its verdict and the program's outputs."""

    def run(
        self,
        sandbox: Sandbox,
        items: Iterator[JobItem | None],
        answer: Callable[[int, tuple[Verdict, Cases | None] | None], None],
    ) -> None:
        jobs = _TaggedJobs(items)
        for verdict, cases in sandbox.outputs(jobs):
            answer(verdict.sample, (jobs.restore(verdict), cases))

    def give_up(
        self, context: Tests, payload: JobPayload, why: str
    ) -> tuple[Verdict, Cases | None]:
        return _invalid(context, payload, why), None


def _invalid(tests: Tests, payload: JobPayload, why: str) -> Verdict:
    return invalid(_join(tests, payload), "sandbox-error", why)


def _join(tests: Tests, payload: JobPayload) -> Job:
    return Job(tests=tests, **payload._asdict())
