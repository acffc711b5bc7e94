"""A pool of threads that take work from one lazy source."""

from __future__ import annotations

import contextlib
import math
import queue
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from assay.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

PAUSE = None  # among items: the next one may take long to come
T = TypeVar("T")
R = TypeVar("R")


def stream(
    items: Iterable[T],
    work: Callable[[T, Callable[[], None]], R],
    workers: int,
    idle_slots: int = 0,
    wants_more: Callable[[T], bool] | None = None,
) -> Iterator[R]:
    """Yield ``work`` of every item, done by ``workers`` threads, in the order of completion.

    The threads read ``items`` one at a time, and this may block. With ``wants_more``, there is one
    thread at first, and another one starts after an item for which it is true. ``work`` calls its
    second argument when it only waits for something. Up to ``idle_slots`` such threads are replaced
    by others until they are done. An error of ``items`` itself is raised after the work already
    taken is done.
    """
    source = _SharedIterator(items)
    # Bounded, so that a slow reader holds the workers back.
    results: queue.Queue[R | BaseException | None] = queue.Queue(workers)
    abandoned = threading.Event()
    threads = _Count()
    slots = threading.Semaphore(idle_slots)

    def put(result: R | BaseException | None) -> None:
        while not abandoned.is_set():
            with contextlib.suppress(queue.Full):
                results.put(result, timeout=0.2)
                return

    def serve() -> None:
        replaced = False

        def on_idle() -> None:
            nonlocal replaced
            if not replaced and slots.acquire(blocking=False):
                replaced = start()
                if not replaced:
                    slots.release()

        try:
            for item in source:
                if wants_more is not None and wants_more(item):
                    start(workers)
                put(work(item, on_idle))
                if replaced:
                    return
        except BaseException as error:
            source.stop()
            put(error)
        finally:
            if replaced:
                slots.release()
            put(None)

    def start(most: float = math.inf) -> bool:
        allowed = threads.add(1) <= most
        if allowed:
            try:
                threading.Thread(target=serve, daemon=True).start()
            except RuntimeError:  # the system allows no more threads
                allowed = False
        if not allowed:
            threads.add(-1)
        return allowed

    started = [start() for _ in range(1 if wants_more else workers)]
    if not any(started):
        raise SandboxError("sandbox: no thread can start. Check the limit on processes.")
    failure: BaseException | None = None
    try:
        while threads.value:
            result = results.get()
            if result is None:
                threads.add(-1)
            elif isinstance(result, BaseException):
                failure = failure or result
            else:
                yield result
    finally:
        source.stop()
        abandoned.set()
    if failure is not None:
        raise failure


class _Count:
    """A number that several threads change."""

    def __init__(self) -> None:
        self.value = 0
        self._lock = threading.Lock()

    def add(self, number: int) -> int:
        with self._lock:
            self.value += number
            return self.value


class _SharedIterator(Generic[T]):
    """An iterator that several threads share."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = iter(items)
        self._lock = threading.Lock()
        self._stopped = False

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        with self._lock:
            if self._stopped:
                raise StopIteration
            try:
                return next(self._items)
            except BaseException:
                self._stopped = True
                raise

    def stop(self) -> None:
        self._stopped = True
