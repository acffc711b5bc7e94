"""Judge jobs as a stage: their tests are the contexts."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TypeVar

from assay.sandbox import PAUSE, Item, Sandbox
from assay.sandbox.host.verdicts import invalid
from assay.types import Cases, Job, Tests, Verdict

NO_TESTS = Tests("", "")
JobItem = Item[Tests, Job]
R = TypeVar("R")


def split_job(job: Job) -> tuple[Tests, Job]:
    """Return a job as an item of a stage: its tests, and the job without them."""
    return job.tests, dataclasses.replace(job, tests=NO_TESTS)


def each(batches: Generator[list[R], None, None]) -> Iterator[R]:
    """Yield the answers of a stage one by one. Close the stage with this iterator."""
    with contextlib.closing(batches):
        for batch in batches:
            yield from batch


class _TaggedJobs:
    """The jobs of items, each with the item's tag as sample number, since keys may occur twice."""

    def __init__(self, items: Iterator[JobItem | None]) -> None:
        self._items = items
        self._samples: dict[int, int] = {}

    def __iter__(self) -> Iterator[Job]:
        for item in self._items:
            if item is not PAUSE:
                self._samples[item.tag] = item.payload.sample
                yield dataclasses.replace(item.payload, tests=item.context, sample=item.tag)

    def restore(self, verdict: Verdict) -> Verdict:
        """Return the verdict with the job's own sample number."""
        return dataclasses.replace(verdict, sample=self._samples.pop(verdict.sample))


@dataclass(frozen=True, slots=True)
class JudgeStage:
    """The stage that answers every job with its verdict."""

    def run(
        self,
        sandbox: Sandbox,
        items: Iterator[JobItem | None],
        answer: Callable[[int, Verdict | None], None],
    ) -> None:
        jobs = _TaggedJobs(items)
        for verdict in sandbox.judge(jobs):
            answer(verdict.sample, jobs.restore(verdict))

    def give_up(self, context: Tests, payload: Job, why: str) -> Verdict:  # noqa: ARG002
        return invalid(payload, "sandbox-error", why)


@dataclass(frozen=True, slots=True)
class OutputsStage:
    """The stage that answers every job with its verdict and the program's outputs."""

    def run(
        self,
        sandbox: Sandbox,
        items: Iterator[JobItem | None],
        answer: Callable[[int, tuple[Verdict, Cases | None] | None], None],
    ) -> None:
        jobs = _TaggedJobs(items)
        for verdict, cases in sandbox.outputs(jobs):
            answer(verdict.sample, (jobs.restore(verdict), cases))

    def give_up(self, context: Tests, payload: Job, why: str) -> tuple[Verdict, None]:  # noqa: ARG002
        return invalid(payload, "sandbox-error", why), None
