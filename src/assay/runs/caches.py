"""Cache verdicts and completions, so that the same work is done once.

Entries are files that are signed with the user's key.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.data import codec
from assay.datasets import read_sealed, write_sealed
from assay.protocol import tests_digest
from assay.types import Completion, Job, Prompt, Request, SampleKey, Verdict

Complete = Callable[[Iterable[Request]], Iterator[Completion]]
# Raise them when the meaning of a verdict, a request or a stored completion changes.
VERDICT_FORMAT, COMPLETION_FORMAT = 6, 1
# struct flock: kind, origin, first byte, count, pid.
LOCK = struct.Struct("hhqqi4x")
DRAWING = "random"  # occurs in tests whose inputs depend on the run's seed
ANSWERS = ("stop", "length")  # other ends are no answers, and may have another end next time


class KeptData:
    """JSON data by key, safe for concurrent runs. A damaged or foreign file counts as missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> Any:
        """Return what was stored, or None."""
        content = read_sealed(self._path(key), self._purpose(key))
        return None if content is None else json.loads(content)

    def has(self, key: str) -> bool:
        """Return whether something is stored. It may be damaged, which only ``get`` finds."""
        return self._path(key).is_file()

    def put(self, key: str, data: Any) -> None:
        write_sealed(self._path(key), self._purpose(key), codec.dumps(data).encode())

    def _purpose(self, key: str) -> str:
        return f"{self._folder.name}/{key}"

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key[2:]}.json"


class VerdictCache:
    """A cache of verdicts for the ``conditions`` of one sandbox."""

    def __init__(self, folder: Path, *conditions: str) -> None:
        self._folder = folder
        self._kept = KeptData(folder)
        self._conditions = [VERDICT_FORMAT, *conditions]

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


class CompletionStore:
    """Completions by request, for the ``conditions`` of one model and its engine.

    ``conditions`` are everything besides a request that can change its text. ``written`` collects
    the keys that this process has stored. Without ``earlier`` only these are found, because the
    user wants new completions, or because the model may have changed since.
    """

    def __init__(
        self,
        folder: Path,
        conditions: Sequence[object],
        *,
        written: set[str] | None = None,
        earlier: bool = True,
    ) -> None:
        self._kept = KeptData(folder)
        self._conditions = [COMPLETION_FORMAT, *conditions]
        self._written = set() if written is None else written
        self._earlier = earlier

    def key(self, request: Request) -> str:
        """Return the key of a request.

        Without sampling the seed has no effect. The number of the sample stands for it, so that
        two samples of one problem are still two requests.
        """
        sampled = request.decoding.temperature > 0
        decoding = codec.to_json(replace(request.decoding, seed=0))
        which = ["seed", request.seed] if sampled else ["sample", request.sample]
        return codec.digest([self._conditions, _encode(request.prompt), decoding, which])

    def get(self, key: str, request: Request) -> Completion | None:
        """Return the stored completion as one of ``request``, marked as reused, or None."""
        if not self.has(key):
            return None
        try:
            stored = codec.from_json(Completion, self._kept.get(key))
            codec.check_numbers(stored)
        except ValueError:
            return None
        return replace(
            stored, task_id=request.task_id, sample=request.sample, seed=request.seed, reused=True
        )

    def has(self, key: str) -> bool:
        """Return whether there is a completion that ``get`` will find, unless it is damaged."""
        return (self._earlier or key in self._written) and self._kept.has(key)

    def put(self, key: str, completion: Completion) -> None:
        """Store a completion, unless the request failed."""
        if completion.error is None and completion.finish_reason in ANSWERS:
            self._kept.put(key, codec.to_json(replace(completion, task_id="", sample=0)))
            self._written.add(key)

    def has_all(self, requests: Iterable[Request]) -> bool:
        """Return whether no request needs the model."""
        return all(self.has(self.key(request)) for request in requests)

    def reuse(self, complete: Complete) -> Complete:
        """Return a function that calls ``complete`` only for requests without an answer here.

        Their answers are stored. Without such requests the engine does not start.
        """

        def reusing(requests: Iterable[Request]) -> Iterator[Completion]:
            reused: list[Completion] = []
            keys: dict[SampleKey, str] = {}

            def new_requests() -> Iterator[Request]:
                for request in requests:
                    key = self.key(request)
                    if (completion := self.get(key, request)) is not None:
                        reused.append(completion)
                    else:
                        keys[request.key] = key
                        yield request

            for completion in complete(new_requests()):
                yield from _take_all(reused)
                self.put(keys.pop(completion.key), completion)
                yield completion
            yield from _take_all(reused)

        return reusing


def _encode(prompt: Prompt) -> Any:
    """Return the prompt as JSON, without suffix and prefill if it has none, as before."""
    absent = {"suffix": prompt.suffix is None, "prefill": not prompt.prefill}
    return {k: value for k, value in codec.to_json(prompt).items() if not absent.get(k)}


def _take_all(completions: list[Completion]) -> Iterator[Completion]:
    """Yield the completions that are there now, and remove them."""
    taken = completions[:]
    del completions[: len(taken)]
    yield from taken
