"""Share one judge between the threads of a process, and never between processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class PerProcess(Generic[T]):
    """A value that every process makes for itself, when it first needs it.

    A copy of it holds nothing, nor does one that was pickled. A forked process makes a value of its
    own, and does not touch its parent's.
    """

    def __init__(self) -> None:
        self._slot: _Slot[T] = _Slot()
        self._inherited: list[_Slot[T]] = []

    def get(self, make: Callable[[], T]) -> T:
        """Return this process's value."""
        slot = self._slot
        if slot.pid != os.getpid():
            # Kept, because to collect the parent's value could end what belongs to the parent.
            self._inherited.append(slot)
            slot = self._slot = _Slot()
        with slot.lock:
            if slot.value is None:
                slot.value = make()
            return slot.value

    def take(self) -> T | None:
        """Return this process's value if there is one, and forget it."""
        slot = self._slot
        if slot.pid != os.getpid():
            return None
        with slot.lock:
            value, slot.value = slot.value, None
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return PerProcess, ()


class _Slot(Generic[T]):
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.value: T | None = None


class Batcher(Generic[T, R]):
    """The work of many threads in batches: while one batch runs, the next one gathers.

    Work is done while ``turn`` is held. Whoever gets it first does the work of all who wait.
    """

    def __init__(
        self, work: Callable[[Sequence[T]], Sequence[R]], turn: threading.Lock | None = None
    ) -> None:
        self._work = work
        self._turn = turn or threading.Lock()
        self._lock = threading.Lock()
        self._waiting: list[tuple[Sequence[T], Future[list[R]]]] = []

    def run(self, items: Sequence[T]) -> list[R]:
        """Return the result of each item. An error of the work is raised in all waiting threads."""
        results: Future[list[R]] = Future()
        with self._lock:
            self._waiting.append((items, results))
        with self._turn:
            if not results.done():
                self._run_waiting()
        return results.result()

    def _run_waiting(self) -> None:
        with self._lock:
            calls, self._waiting = self._waiting, []
        try:
            results = iter(self._work([item for items, _ in calls for item in items]))
        except BaseException as error:
            for _, own in calls:
                own.set_exception(error)
            return
        for items, own in calls:
            own.set_result([next(results) for _ in items])
