"""Follow one text: which program is judged next, and which verdict counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from assay.extract.workers import Extraction
from assay.judging.job import JudgeTask
from assay.types import Job, Program, Verdict


@dataclass(slots=True)
class Attempts:
    """The programs of a text in the order in which they are judged.

    A program that was cut in doubt has an alternative, its uncut form. That is judged if the cut
    one fails. If both fail, the verdict on the first one counts.
    """

    alternative: Job | None = None
    truncated: bool = False  # the text was cut off at the token limit
    programs: tuple[Program, ...] = ()
    failed: Verdict | None = None  # the verdict on the first program

    def settle(self, verdict: Verdict) -> Verdict | Job:
        """Take the verdict on a program. Return the one that counts, or the next job."""
        if self.alternative is not None and verdict.status == "fail":
            job, self.alternative, self.failed = self.alternative, None, verdict
            self.programs += (job.program,)
            return job
        if self.failed is not None and verdict.status == "fail":
            verdict = self.failed
        if self.truncated and verdict.status == "fail":
            detail = ": ".join(filter(None, (verdict.reason, verdict.detail)))
            return replace(verdict, reason="truncated", detail=detail)
        return verdict


def begin(
    task: JudgeTask,
    extraction: Extraction,
    sample: int = 0,
    *,
    seed: str = "",
    truncated: bool = False,
) -> tuple[Attempts, Verdict | Job]:
    """Return the attempts of a text, and the first job or a verdict without any execution."""
    attempts = Attempts(truncated=truncated)
    task_id = task.problem.task_id
    if task.unscorable:
        return attempts, Verdict(
            task_id, sample, "invalid", "unscorable", task.unscorable, rule="none"
        )
    if extraction.reason:
        verdict = Verdict(
            task_id, sample, "fail", extraction.reason, extraction.detail, rule="none"
        )
        return attempts, attempts.settle(verdict)
    attempts.programs = (extraction.program,)
    job = task.make_job(extraction.program, sample, seed=seed)
    if extraction.alternative is not None:
        attempts.alternative = replace(job, program=extraction.alternative)
    return attempts, job


def judge_extracted(
    texts: Sequence[tuple[JudgeTask, Extraction]],
    execute: Callable[[list[Job]], Sequence[Verdict]],
) -> list[Verdict]:
    """Return the verdict on each text, whose ``sample`` is its position.

    ``execute`` gets all first programs at once, then the other forms of those that failed.
    """
    begun = [begin(task, extraction, number) for number, (task, extraction) in enumerate(texts)]
    steps = [first for _, first in begun]
    while jobs := [step for step in steps if isinstance(step, Job)]:
        for verdict in execute(jobs):
            steps[verdict.sample] = begun[verdict.sample][0].settle(verdict)
    return [step for step in steps if isinstance(step, Verdict)]
