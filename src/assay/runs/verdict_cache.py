"""Cache verdicts, so that identical programs run once under identical conditions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from assay import codec
from assay.protocol import tests_digest
from assay.runs.kept import KeptData
from assay.types import Job, Verdict

# Raise it when the meaning of a verdict changes.
FORMAT = 4


DRAWING = "random"  # occurs in tests whose inputs depend on the run's seed


class VerdictCache:
    """A cache of verdicts for the ``conditions`` of one sandbox."""

    def __init__(self, folder: Path, *conditions: str) -> None:
        self._kept = KeptData(folder)
        self._conditions = [FORMAT, *conditions]

    def key(self, job: Job) -> str:
        settings = [codec.to_json(job.limits), job.environment, tests_digest(job.tests)]
        if DRAWING in job.tests.code or DRAWING in job.tests.preamble:
            settings.append(job.seed)
        return codec.digest([self._conditions, settings, job.program.code])

    def get(self, key: str, job: Job) -> Verdict | None:
        """Return the cached verdict as one on ``job``, or None."""
        try:
            verdict = codec.from_json(Verdict, self._kept.get(key))
        except ValueError:
            return None
        return replace(verdict, task_id=job.task_id, sample=job.sample, rule=job.program.rule)

    def put(self, key: str, verdict: Verdict) -> None:
        """Cache the verdict unless it could change: invalid verdicts and timeouts are left out."""
        if verdict.status != "invalid" and verdict.reason != "timeout":
            self._kept.put(key, codec.to_json(replace(verdict, task_id="", sample=0)))
