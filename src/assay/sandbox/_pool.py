"""Workers that take from one lazy stream."""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
R = TypeVar("R")


def stream(items: Iterable[T], work: Callable[[T], R], workers: int) -> Iterator[R]:
    """``work`` of every item, by ``workers`` threads, in the order of completion.

    An error of ``items`` itself is raised after the work already taken is done.
    """
    source = _Source(items)
    # Bounded, so that a slow reader holds the workers back.
    results: queue.Queue[R | BaseException | None] = queue.Queue(workers)
    abandoned = threading.Event()

    def put(result: R | BaseException | None) -> None:
        while not abandoned.is_set():
            with contextlib.suppress(queue.Full):
                results.put(result, timeout=0.2)
                return

    def serve() -> None:
        try:
            for item in source:
                put(work(item))
        except BaseException as error:
            source.stop()
            put(error)
        finally:
            put(None)

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    failure: BaseException | None = None
    try:
        running = workers
        while running:
            result = results.get()
            if result is None:
                running -= 1
            elif isinstance(result, BaseException):
                failure = failure or result
            else:
                yield result
    finally:
        source.stop()
        abandoned.set()
    if failure is not None:
        raise failure


class _Source(Generic[T]):
    """An iterator that several threads may share."""

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
