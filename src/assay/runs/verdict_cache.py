"""Verdicts by what was executed: identical programs under identical conditions run once."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import replace
from pathlib import Path

from assay import codec
from assay.types import Job, Verdict

# Raised when what a verdict means changes.
FORMAT = 1


class VerdictCache:
    """A folder of small files, safe for runs side by side; a damaged file counts as none."""

    def __init__(self, folder: Path, *conditions: str) -> None:
        self._folder = folder
        self._conditions = [FORMAT, *conditions]

    def key(self, job: Job) -> str:
        tests = job.tests
        cases = tests.cases.digest if tests.cases else ""
        asked = [tests.preamble, tests.entry_point, tests.code, tests.integrity, cases]
        limits = codec.to_json(job.limits)
        return codec.digest([self._conditions, limits, job.environment, job.program.code, asked])

    def get(self, key: str, job: Job) -> Verdict | None:
        """The verdict on what ``key`` stands for, as one on ``job``."""
        try:
            stored = json.loads(self._path(key).read_bytes())
            if stored["sha256"] != codec.digest([key, stored["verdict"]]):
                return None
            verdict = codec.from_json(Verdict, stored["verdict"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return replace(verdict, task_id=job.task_id, sample=job.sample, rule=job.program.rule)

    def put(self, key: str, verdict: Verdict) -> None:
        """Keep it, if it would come out the same again: no failure of ours, no time-out."""
        if verdict.status == "invalid" or verdict.reason == "timeout":
            return
        data = codec.to_json(replace(verdict, task_id="", sample=0))
        path = self._path(key)
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        # A cache that cannot be written costs time, nothing else.
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(codec.dumps({"sha256": codec.digest([key, data]), "verdict": data}))
            partial.replace(path)

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key[2:]}.json"
