"""Run programs on another machine, by its judge service: ``--sandbox remote:URL``.

Jobs are sent in batches, and verdicts come back one by one.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from assay.data.guard import read_token
from assay.errors import SandboxError
from assay.judging.client import JudgeClient
from assay.judging.wire import decode_outputs, decode_verdict, encode_job, name_tests, native_tests
from assay.sandbox import Capabilities, run_here
from assay.sandbox.environments import interpreters
from assay.types import Cases, Job, Tests, Verdict
from assay.work import run_in_background

TOKEN_FILE = "ASSAY_JUDGE_TOKEN_FILE"
AHEAD = 8  # programs per worker of the service that are under way
SENDERS = 4
LEAST_BATCH = 8
MOST_NAMES = 1000
LOOK_EVERY_S = 0.2
Outcome = tuple[Verdict, Cases | None]


class RemoteSandbox:
    """A sandbox whose workers belong to a judge service.

    Its kind names the service's kind, tier and version of assay. The kind is part of the protocol,
    so a run is never resumed by a service of another tier.
    """

    def __init__(self, url: str, workers: int, tier: str) -> None:
        path = os.environ.get(TOKEN_FILE)
        self.client = JudgeClient(url, read_token(Path(path)) if path else "")
        self._about = about = self.client.about()
        self._judge: Mapping[str, Any] = about["judge"]
        self.ahead = AHEAD * (workers or int(about["workers"]))
        self.batch = max(1, min(int(about["batch"]), max(LEAST_BATCH, self.ahead // SENDERS)))
        self._names: dict[int, tuple[Tests, str]] = {}
        self._lock = threading.Lock()
        own = self._judge["tier"]
        if tier not in ("auto", own):
            raise SandboxError(
                f"--sandbox-tier {tier}: the judge service {self.client.address} has the tier "
                f"{own}. Start it with --sandbox-tier {tier}, or omit the option."
            )

    def capabilities(self) -> Capabilities:
        judge, sandbox = self._judge, self._about["sandbox"]
        return Capabilities(
            kind=f"remote {judge['kind']}/{judge['tier']}, assay {judge['assay']}",
            tier=judge["tier"],
            python=judge["python"],
            guarantees=tuple(sandbox["guarantees"]),
            gaps=tuple(sandbox["gaps"]),
            files=sandbox["files"],
            refused=tuple(sandbox["refused"]),
            # Measured times are of that machine.
            image=f"{judge['image']} on {self._about['node']}".strip(),
        )

    def judge(self, jobs: Iterable[Job]) -> Iterator[Verdict]:
        with closing(_Exchange(self).outcomes(jobs)) as outcomes:
            for verdict, _ in outcomes:
                yield verdict

    def outputs(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        with closing(_Exchange(self).outcomes(jobs)) as outcomes:
            yield from outcomes

    run_stage = run_here

    def close(self) -> None:
        """Break all connections. The service then drops what still waits."""
        self.client.close()

    def name(self, tests: Tests) -> str:
        """Return the name of tests. They are held, so that their identity stays theirs."""
        with self._lock:
            known = self._names.get(id(tests))
            if known is None:
                if len(self._names) >= MOST_NAMES:
                    self._names.clear()
                known = self._names[id(tests)] = tests, name_tests(native_tests(tests))[0]
            return known[1]

    def make_body(self, jobs: Sequence[Job], missing: set[str]) -> dict[str, Any]:
        """Return a request for jobs, with the tests that the service does not hold."""
        named = {self.name(job.tests): job.tests for job in jobs}
        return {
            "programs": [encode_job(job, self.name(job.tests)) for job in jobs],
            "named_tests": {
                name: native_tests(tests) for name, tests in named.items() if name in missing
            },
        }


class _Exchange:
    """The jobs of one call. Several threads have a request each under way.

    Another thread reads the jobs, because that may block: a batch must not wait for it.
    """

    def __init__(self, sandbox: RemoteSandbox) -> None:
        self._sandbox = sandbox
        self._pending: queue.Queue[Job | None] = queue.Queue(max(1, sandbox.ahead))
        self._results: queue.Queue[Outcome | BaseException | None] = queue.Queue()
        self._stopped = threading.Event()
        self._of_jobs: BaseException | None = None

    def outcomes(self, jobs: Iterable[Job]) -> Generator[Outcome, None, None]:
        """Yield the outcome of every job. An error of ``jobs`` is raised after the others."""
        works: list[Callable[[], None]] = [partial(self._read, jobs), *[self._send] * SENDERS]
        for work in works:
            run_in_background(work)
        open_threads, failure = len(works), None
        finished = False
        try:
            while open_threads:
                result = self._results.get()
                if result is None:
                    open_threads -= 1
                elif isinstance(result, BaseException):
                    failure = failure or result
                    self._stopped.set()
                else:
                    yield result
            finished = True
        finally:
            self._stopped.set()
            if not finished:
                self._sandbox.client.close()
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
                for job, line in self._sandbox.client.judge_all(batch, self._sandbox.make_body):
                    verdict = decode_verdict(line, job.task_id, job.sample)
                    self._results.put((verdict, decode_outputs(line, job.tests.cases)))
        except BaseException as error:
            self._results.put(error)
        finally:
            self._results.put(None)

    def _take(self) -> list[Job]:
        """Return the jobs that are there, at least one; none at the end."""
        batch: list[Job] = []
        while not self._stopped.is_set() and len(batch) < self._sandbox.batch:
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


def open_remote(url: str, workers: int, tier: str, python: str) -> RemoteSandbox:
    """Open the sandbox of a judge service. Raise SandboxError if it is not what was asked for."""
    sandbox = RemoteSandbox(url, workers, tier)
    interpreters.require(python, sandbox, f"Start the judge service with --python {python}")
    return sandbox
