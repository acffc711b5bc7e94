"""Run threads that share one lazy source of batches."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Flow(Generic[T, R]):
    """Run ``work`` on every batch with at most ``most`` threads, in the order of completion.

    The threads read ``batches`` one at a time, and this may block. Another thread starts whenever a
    batch was full, because there may be a backlog then.
    """

    def __init__(
        self,
        work: Callable[[Sequence[T]], R],
        batches: Iterator[Sequence[T]],
        is_full: Callable[[Sequence[T]], bool],
        most: int,
    ) -> None:
        self._work, self._batches, self._is_full, self._most = work, batches, is_full, most
        self._source_lock, self._count_lock = threading.Lock(), threading.Lock()
        self._threads = 0
        self._stopped = threading.Event()
        self._abandoned = threading.Event()
        # Bounded, so that a slow reader holds the workers back.
        self._results: queue.Queue[R | BaseException | None] = queue.Queue(most)

    def results(self) -> Iterator[R]:
        """Yield the results of the work.

        An error is raised after the work already taken is done.
        """
        failure: BaseException | None = None
        self._start_thread()
        try:
            while self._threads:
                result = self._results.get()
                if result is None:
                    self._count(-1)
                elif isinstance(result, BaseException):
                    failure = failure or result
                else:
                    yield result
        finally:
            self._stopped.set()
            self._abandoned.set()
        if failure is not None:
            raise failure

    def _start_thread(self) -> None:
        others = self._count(1) - 1
        try:
            if others < self._most:
                threading.Thread(target=self._serve, daemon=True).start()
                return
        except RuntimeError:  # the system allows no more threads: the others do the work
            if not others:
                raise
        self._count(-1)

    def _count(self, change: int) -> int:
        with self._count_lock:
            self._threads += change
            return self._threads

    def _serve(self) -> None:
        try:
            while (batch := self._next_batch()) is not None:
                if self._is_full(batch):
                    self._start_thread()
                self._put(self._work(batch))
        except BaseException as error:
            self._stopped.set()
            self._put(error)
        finally:
            self._put(None)

    def _next_batch(self) -> Sequence[T] | None:
        with self._source_lock:
            batch = None if self._stopped.is_set() else next(self._batches, None)
            if batch is None:
                self._stopped.set()
            return batch

    def _put(self, result: R | BaseException | None) -> None:
        while not self._abandoned.is_set():
            with contextlib.suppress(queue.Full):
                self._results.put(result, timeout=0.2)
                return
