"""Run many requests at a time in threads: bounded, lazy, and stoppable from any thread."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from assay.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
R = TypeVar("R")

JOIN_S = 2.0


class RequestPool(Generic[T, R]):
    """``hands`` threads that do ``work``, each on one item at a time.

    To stop, ``stopped`` is set and ``wake`` called, which must end whatever the work waits for.
    """

    def __init__(
        self,
        work: Callable[[T], R],
        hands: int,
        stopped: threading.Event,
        wake: Callable[[], None],
    ) -> None:
        self._work, self._hands = work, hands
        self._stopped, self._wake = stopped, wake
        self._threads: list[threading.Thread] = []
        self._todo: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[R | BaseException] = queue.SimpleQueue()

    def run(self, items: Iterable[T]) -> Iterator[R]:
        """Yield the results as they are finished.

        At most ``hands`` items are taken and not yet returned, so a kill loses no more than
        these. The first failure is raised after all results that were finished before it.
        """
        out = 0
        try:
            for item in items:
                self._hand_out(item)
                out += 1
                if out == self._hands:
                    yield self._next()
                    out -= 1
            while out:
                yield self._next()
                out -= 1
        except Exception:
            yield from self._drain()
            raise
        finally:
            self.stop()
            self._join()

    def stop(self) -> None:
        """Make ``run`` raise ModelError, from any thread."""
        self._stopped.set()
        self._wake()
        for _ in self._threads:
            self._todo.put(None)
        self._done.put(
            ModelError("Interrupted. Completed work is saved; run the same command to resume.")
        )

    def _hand_out(self, item: T) -> None:
        if len(self._threads) < self._hands:
            thread = threading.Thread(target=self._serve, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._todo.put(item)

    def _serve(self) -> None:
        while (item := self._todo.get()) is not None and not self._stopped.is_set():
            try:
                self._done.put(self._work(item))
            except BaseException as error:
                self._done.put(error)
                return

    def _next(self) -> R:
        result = self._done.get()
        if isinstance(result, BaseException):
            raise result
        return result

    def _drain(self) -> Iterator[R]:
        with contextlib.suppress(queue.Empty):
            while True:
                result = self._done.get_nowait()
                if not isinstance(result, BaseException):
                    yield result

    def _join(self) -> None:
        """Wait for the threads a limited time. A thread that hangs ends at its own time limit."""
        deadline = time.monotonic() + JOIN_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
