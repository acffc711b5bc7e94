"""Share one judge between the threads of a process, and never between processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class PerProcess(Generic[T]):
    """Hold a value that every process makes for itself, when it first needs it.

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
    """Do the work of many threads in batches: while one batch runs, the next one gathers.

    Work is done while ``turn`` is held.
    """

    def __init__(
        self, work: Callable[[Sequence[T]], Sequence[R]], turn: threading.Lock | None = None
    ) -> None:
        self._work = work
        self._turn = turn or threading.Lock()
        self._lock = threading.Lock()
        self._waiting: list[_SharedCall[T, R]] = []

    def run(self, items: Sequence[T]) -> Sequence[R]:
        """Return the result of each item. An error of the work is raised in every waiting thread.

        Whoever comes first does the work of all who wait.
        """
        call: _SharedCall[T, R] = _SharedCall(items)
        with self._lock:
            self._waiting.append(call)
        with self._turn:
            if call.results is None and call.error is None:
                self._run_waiting()
        if call.error is not None:
            raise call.error
        assert call.results is not None
        return call.results

    def _run_waiting(self) -> None:
        with self._lock:
            calls, self._waiting = self._waiting, []
        try:
            results = self._work([item for call in calls for item in call.items])
        except BaseException as error:
            for call in calls:
                call.error = error
            return
        start = 0
        for call in calls:
            call.results = results[start : start + len(call.items)]
            start += len(call.items)


class _SharedCall(Generic[T, R]):
    def __init__(self, items: Sequence[T]) -> None:
        self.items = items
        self.results: Sequence[R] | None = None
        self.error: BaseException | None = None
