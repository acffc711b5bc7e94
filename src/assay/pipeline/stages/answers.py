"""Decide about answers that need no execution, and turn the others into programs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from assay.extract.answers import Decision, answer_kinds
from assay.sandbox import Sandbox
from assay.types import Job, Verdict


def decide(job: Job) -> Verdict | Job:
    """Return the verdict on an answer, or the job that a sandbox can judge."""
    answer, cases = job.tests.answer, job.tests.cases
    if answer is None:
        return job
    found = answer_kinds.get(answer.kind).check(job.program.code, job.tests)
    if not isinstance(found, Decision):
        return replace(job, program=replace(job.program, code=found))
    return Verdict(
        job.task_id,
        job.sample,
        "pass" if found.passed else "fail",
        found.reason,
        found.detail,
        integrity=job.tests.integrity,
        rule=job.program.rule,
        groups={name: (int(found.passed), 1) for name in cases.expected} if cases else {},
    )


def judge_jobs(sandbox: Sandbox, jobs: Iterable[Job]) -> Iterator[Verdict]:
    """Yield one verdict per job, in any order. Only what has to be executed goes to the sandbox."""
    if isinstance(jobs, list):
        found = [decide(job) for job in jobs]
        yield from (verdict for verdict in found if isinstance(verdict, Verdict))
        if rest := [job for job in found if isinstance(job, Job)]:
            yield from sandbox.judge(rest)
        return
    decided: deque[Verdict] = deque()
    for verdict in sandbox.judge(_undecided(jobs, decided)):
        yield verdict
        while decided:
            yield decided.popleft()
    yield from decided


def _undecided(jobs: Iterable[Job], decided: deque[Verdict]) -> Iterator[Job]:
    for job in jobs:
        found = decide(job)
        if isinstance(found, Verdict):
            decided.append(found)
        else:
            yield found
