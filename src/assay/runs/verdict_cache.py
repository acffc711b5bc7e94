"""Verdicts by what was executed: identical programs under identical conditions run once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from assay import codec
from assay.protocol import tests_digest
from assay.runs.kept import KeptData
from assay.types import Job, Verdict

# Raised when what a verdict means changes.
FORMAT = 4


DRAWING = "random"  # in tests whose inputs depend on the run's seed


class VerdictCache:
    """``conditions`` are the sandbox's: a verdict holds for them alone."""

    def __init__(self, folder: Path, *conditions: str) -> None:
        self._kept = KeptData(folder)
        self._conditions = [FORMAT, *conditions]

    def key(self, job: Job) -> str:
        asked = [codec.to_json(job.limits), job.environment, tests_digest(job.tests)]
        if DRAWING in job.tests.code or DRAWING in job.tests.preamble:
            asked.append(job.seed)
        return codec.digest([self._conditions, asked, job.program.code])

    def get(self, key: str, job: Job) -> Verdict | None:
        """The verdict on what ``key`` stands for, as one on ``job``."""
        try:
            verdict = codec.from_json(Verdict, self._kept.get(key))
        except ValueError:
            return None
        return replace(verdict, task_id=job.task_id, sample=job.sample, rule=job.program.rule)

    def put(self, key: str, verdict: Verdict) -> None:
        """Keep it, if it would come out the same again: no failure of ours, no time-out."""
        if verdict.status != "invalid" and verdict.reason != "timeout":
            self._kept.put(key, codec.to_json(replace(verdict, task_id="", sample=0)))
