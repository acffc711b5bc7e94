"""Cache verdicts, so that identical programs run once under identical conditions."""

from __future__ import annotations

import fcntl
import functools
import os
import struct
from dataclasses import replace
from pathlib import Path

from assay.data import codec
from assay.protocol import tests_digest
from assay.runs.kept import KeptData
from assay.types import Job, Verdict

# Raise it when the meaning of a verdict changes.
FORMAT = 6


# struct flock: kind, origin, first byte, count, pid.
LOCK = struct.Struct("hhqqi4x")
DRAWING = "random"  # occurs in tests whose inputs depend on the run's seed


class VerdictCache:
    """A cache of verdicts for the ``conditions`` of one sandbox."""

    def __init__(self, folder: Path, *conditions: str) -> None:
        self._folder = folder
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

    def claim(self, key: str) -> bool:
        """Return False if another process is executing this program now.

        The claim ends with ``release``, or with this process.
        """
        return _lock(self._folder, key, fcntl.F_WRLCK)

    def release(self, key: str) -> None:
        _lock(self._folder, key, fcntl.F_UNLCK)

    def put(self, key: str, verdict: Verdict) -> None:
        """Cache the verdict unless it could change: invalid verdicts and timeouts are left out."""
        if verdict.status != "invalid" and verdict.reason != "timeout":
            self._kept.put(key, codec.to_json(replace(verdict, task_id="", sample=0)))


@functools.cache
def _claims(folder: Path) -> int:
    """Open the file whose bytes stand for programs. Each process has one lock per byte."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(folder / "claims", flags, 0o600)


def _lock(folder: Path, key: str, kind: int) -> bool:
    """Lock or unlock the byte of a program. Return False only if another process has locked it."""
    lock = LOCK.pack(kind, os.SEEK_SET, int(key[:15], 16), 1, 0)
    try:
        fcntl.fcntl(_claims(folder), fcntl.F_OFD_SETLK, lock)
    except BlockingIOError:
        return False
    except OSError:  # a cache that cannot be locked: a program may be executed twice
        pass
    return True
