"""Send jobs to a judge service in batches, and yield what comes back."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from assay.errors import SandboxError
from assay.sandbox.remote.client import (
    JudgeClient,
)
from assay.sandbox.remote.wire import decode_outputs, decode_verdict, encode_tests, name_tests
from assay.types import Cases, Job, Tests, Verdict

SENDERS = 4
LEAST_BATCH = 8
MOST_NAMES = 1000
LOOK_EVERY_S = 0.2
Outcome = tuple[Verdict, Cases | None]


@dataclass(frozen=True, slots=True)
class Remote:
    """Hold what a judge service says about itself, as far as its clients need it."""

    judge: Mapping[str, Any]  # equal for as long as verdicts mean the same
    sandbox: Mapping[str, Any]
    workers: int
    batch: int
    node: str


class Names:
    """Name tests by their content. The tests are held, so that their identity stays theirs."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Tests, str]] = {}
        self._lock = threading.Lock()

    def name(self, tests: Tests) -> str:
        """Return the name of tests."""
        with self._lock:
            known = self._known.get(id(tests))
            if known is None:
                if len(self._known) >= MOST_NAMES:
                    self._known.clear()
                known = tests, name_tests(describe(tests))[0]
                self._known[id(tests)] = known
            return known[1]


def describe(tests: Tests) -> dict[str, Any]:
    """Return tests in the form of a request.

    A sandbox executes programs. Answers that are not programs were decided about before.
    """
    return {"native": encode_tests(replace(tests, answer=None))}


class Exchange:
    """Send the jobs of one call. Several threads have a request each under way."""

    def __init__(self, client: JudgeClient, remote: Remote, names: Names, ahead: int) -> None:
        self._client, self._remote, self._names = client, remote, names
        self._most = max(1, min(remote.batch, max(LEAST_BATCH, ahead // SENDERS)))
        self._pending: queue.Queue[Job | None] = queue.Queue(max(1, ahead))
        self._results: queue.Queue[Outcome | BaseException | None] = queue.Queue()
        self._stopped = threading.Event()
        self._of_jobs: BaseException | None = None

    def outcomes(self, jobs: Iterable[Job]) -> Generator[Outcome, None, None]:
        """Yield the outcome of every job. An error of ``jobs`` is raised after the others."""
        threads = [threading.Thread(target=self._read, args=(jobs,), daemon=True)]
        threads += [threading.Thread(target=self._send, daemon=True) for _ in range(SENDERS)]
        for thread in threads:
            thread.start()
        open_threads, failure = len(threads), None
        finished = False
        try:
            while open_threads:
                found = self._results.get()
                if found is None:
                    open_threads -= 1
                elif isinstance(found, BaseException):
                    failure = failure or found
                    self._stopped.set()
                else:
                    yield found
            finished = True
        finally:
            self._stopped.set()
            if not finished:
                self._client.close()
        if (error := failure or self._of_jobs) is not None:
            raise error

    def _read(self, jobs: Iterable[Job]) -> None:
        """Read jobs only as far ahead as there is room."""
        try:
            for job in jobs:
                if not self._put(job):
                    return
        except BaseException as error:
            self._of_jobs = error
        finally:
            self._put(None)
            self._results.put(None)

    def _put(self, job: Job | None) -> bool:
        while not self._stopped.is_set():
            try:
                self._pending.put(job, timeout=LOOK_EVERY_S)
            except queue.Full:
                continue
            return True
        return False

    def _send(self) -> None:
        try:
            while batch := self._take():
                for job, line in self._client.judge_all(batch, self._body):
                    self._results.put(_outcome(job, line))
        except BaseException as error:
            self._results.put(error)
        finally:
            self._results.put(None)

    def _take(self) -> list[Job]:
        """Return the jobs that are there, at least one; none at the end."""
        batch: list[Job] = []
        while not self._stopped.is_set() and len(batch) < self._most:
            try:
                job = self._pending.get(block=not batch, timeout=LOOK_EVERY_S)
            except queue.Empty:
                if batch:
                    break
                continue
            if job is None:
                self._put(None)  # for the other threads
                break
            batch.append(job)
        return batch

    def _body(self, jobs: Sequence[Job], missing: set[str]) -> dict[str, Any]:
        named, programs = {}, []
        for job in jobs:
            name = self._names.name(job.tests)
            if name in missing and name not in named:
                named[name] = describe(job.tests)
            one: dict[str, Any] = {
                "task_id": job.task_id, "program": job.program.code, "rule": job.program.rule,
                "tests": name, "limits": asdict(job.limits), "seed": job.seed,
            }  # fmt: skip
            if job.imports:
                one["imports"] = list(job.imports)
            if job.environment:
                one["environment"] = job.environment
            if job.alone:
                one["alone"] = True
            programs.append(one)
        return {"programs": programs, "named_tests": named}


def _outcome(job: Job, line: Mapping[str, Any]) -> Outcome:
    try:
        verdict = decode_verdict(line, job.task_id, job.sample)
        return verdict, decode_outputs(line, job.tests.cases)
    except ValueError as error:
        raise SandboxError(f"judge service: {error}. Use the same version of assay.") from error
