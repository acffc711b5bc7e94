"""Keep workers of any kind warm between calls of a sandbox."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Sized
from contextlib import AbstractContextManager
from typing import Generic, Protocol, TypeVar

from assay.errors import SandboxError
from assay.types import Job
from assay.work import RWLock, ThreadRWLock, pool


class Killable(Protocol):
    """A worker. Any thread may call ``kill``."""

    def kill(self) -> None: ...


LEAST_ALIVE = 8  # jobs of a judge service need workers of several settings in turn
# That a program is alone whose tests measure time. Those of BigCodeBench sleep for up to 26 s.
ALONE_S = 30.0
W = TypeVar("W", bound=Killable)
R = TypeVar("R")


class WarmWorkers(Generic[W]):
    """The workers of a sandbox: the idle ones, and all that are alive."""

    def __init__(self, workers: int, first: W | None, alone: RWLock | None = None) -> None:
        self._workers = workers
        self._idle = [first] if first else []
        self._alive = set(self._idle)
        self._lock = threading.Lock()
        self._alone = alone or ThreadRWLock()
        self._closed = False

    def close(self) -> None:
        """End all workers. A later call of ``judge`` starts new ones."""
        with self._lock:
            self._closed = True
            workers, self._alive, self._idle = self._alive, set(), []
        for worker in workers:
            worker.kill()

    def _stream(
        self,
        jobs: Iterable[Job],
        run: Callable[[Job, Callable[[], None]], R],
        dozing: int,
    ) -> Generator[R, None, None]:
        """Yield what ``run`` returns for each job. End all workers if the caller stops early."""
        self._closed = False
        workers = self._workers
        if isinstance(jobs, Sized):  # a call with one program starts one thread
            workers = min(workers, max(1, len(jobs)))
        finished = False
        try:
            yield from pool.stream(jobs, run, workers, dozing)
            finished = True
        finally:
            if not finished:
                self.close()

    def _turn(self, job: Job, doze: Callable[[], None]) -> AbstractContextManager[None]:
        """Wait until a job may run, then hold others back while it runs if it must be alone."""
        if not job.alone:
            return self._alone.shared()
        doze()  # others need not wait with it
        return self._alone.exclusive_for(ALONE_S)

    def _take(self, fits: Callable[[W], bool], start: Callable[[], W]) -> W:
        """Return an idle worker that fits, or a new one. End idle ones if there are too many."""
        with self._lock:
            if self._closed:
                raise SandboxError("stopped")
            for worker in self._idle:
                if fits(worker):
                    self._idle.remove(worker)
                    return worker
            many = self._idle and len(self._alive) >= max(LEAST_ALIVE, 2 * self._workers)
            needless = self._idle.pop(0) if many else None
        if needless:
            self._drop(needless)
        worker = start()
        with self._lock:
            if not self._closed:
                self._alive.add(worker)
                return worker
        worker.kill()
        raise SandboxError("stopped")

    def _give_back(self, worker: W) -> None:
        with self._lock:
            if worker in self._alive:
                self._idle.append(worker)

    def _drop(self, worker: W) -> None:
        with self._lock:
            self._alive.discard(worker)
        worker.kill()
