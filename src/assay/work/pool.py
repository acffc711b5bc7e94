"""A pool of threads that take work from one lazy source."""

from __future__ import annotations

import math
import queue
import threading
import time
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from assay.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

PAUSE = None  # among items: the next one may take long to come
STOP_S = 2.0  # for threads to end after they were stopped
T = TypeVar("T")
R = TypeVar("R")


def run_in_background(work: Callable[[], object], name: str | None = None) -> threading.Thread:
    """Start a thread that does not keep the process from ending, and return it."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def stream(
    items: Iterable[T],
    work: Callable[[T, Callable[[], None]], R],
    workers: int,
    idle_slots: int = 0,
    wants_more: Callable[[T], bool] | None = None,
    ahead: int | None = None,
    stop: Callable[[], None] | None = None,
) -> Iterator[R]:
    """Yield ``work`` of every item, done by ``workers`` threads, in the order of completion.

    The threads read ``items`` one at a time, and this may block. At most ``ahead`` results wait
    for the caller, by default one per worker. With ``wants_more``, there is one thread at first,
    and another one starts after an item for which it is true. ``work`` calls its second argument
    when it only waits for something. Up to ``idle_slots`` such threads are replaced by others until
    they are done.

    The first error of ``work`` or of ``items`` is raised after the work already taken is done.
    ``stop`` is called at once if there is an error or the caller stops early. It must end whatever
    ``work`` waits for. A thread that hangs anyway is left alone after two seconds.
    """
    # Bounded, so that a slow reader holds the workers back.
    places = workers + idle_slots + (workers if ahead is None else ahead)
    pool = _Pool(iter(items), work, workers, idle_slots, wants_more, places)
    started = [pool.start() for _ in range(1 if wants_more else workers)]
    if not any(started):
        raise SandboxError("sandbox: no thread can start. Check the limit on processes.")
    failure: BaseException | None = None
    deadline = math.inf
    try:
        while pool.running and (left_s := deadline - time.monotonic()) > 0:
            try:
                result = pool.results.get(timeout=None if left_s == math.inf else left_s)
            except queue.Empty:
                break
            if isinstance(result, _Ended):
                pool.end()
                if result.error is not None and failure is None:
                    failure = result.error
                    if stop is not None:
                        stop()
                        deadline = time.monotonic() + STOP_S
            else:
                yield result
                pool.places.release()
    finally:
        pool.stop()
        if stop is not None:
            stop()
            pool.join(STOP_S)
    if failure is not None:
        raise failure


class _Ended(NamedTuple):
    """The end of a thread, among the results."""

    error: BaseException | None


class _Pool(Generic[T, R]):
    """The threads of a stream, their source and their results.

    A thread takes a place before it reads an item. The caller frees the place when it has got the
    result. A thread that ends without a result frees its place, so that another one that waits
    for a place finds the end too.
    """

    def __init__(
        self,
        source: Iterator[T],
        work: Callable[[T, Callable[[], None]], R],
        workers: int,
        idle_slots: int,
        wants_more: Callable[[T], bool] | None,
        places: int,
    ) -> None:
        self._source, self._work, self._workers = source, work, workers
        self._wants_more = wants_more
        self.results: queue.SimpleQueue[R | _Ended] = queue.SimpleQueue()
        self.places = threading.Semaphore(places)
        self.running = 0
        self._slots = threading.Semaphore(idle_slots)
        self._threads: set[threading.Thread] = set()
        self._lock, self._reading = threading.Lock(), threading.Lock()
        self._stopped = False

    def start(self, most: float = math.inf) -> bool:
        """Start a thread, unless there are so many. Return whether it started."""
        thread = threading.Thread(target=self._serve, daemon=True)
        with self._lock:  # all of it, so that ``join`` never sees a thread that is to start
            if self._stopped or self.running >= most:
                return False
            self._threads.add(thread)
            try:
                thread.start()
            except RuntimeError:  # the system allows no more threads
                self._threads.discard(thread)
                return False
            self.running += 1
        return True

    def end(self) -> None:
        """Note that a thread has ended."""
        with self._lock:
            self.running -= 1

    def stop(self) -> None:
        """Read no more items."""
        self._stopped = True
        self.places.release(self.running + 1)

    def join(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _serve(self) -> None:
        replaced, error = False, None

        def on_idle() -> None:
            nonlocal replaced
            if not replaced and self._slots.acquire(blocking=False):
                replaced = self.start()
                if not replaced:
                    self._slots.release()

        try:
            for item in self._items():
                if self._wants_more is not None and self._wants_more(item):
                    self.start(self._workers)
                self.results.put(self._work(item, on_idle))
                if replaced:
                    break
        except BaseException as caught:
            error = caught
            self._stopped = True
            self.places.release()
        finally:
            if replaced:
                self._slots.release()
            self._threads.discard(threading.current_thread())
            self.results.put(_Ended(error))

    def _items(self) -> Iterator[T]:
        while True:
            self.places.acquire()
            with self._reading:
                if self._stopped:
                    break
                try:
                    item = next(self._source)
                except StopIteration:
                    self._stopped = True
                    break
            yield item
        self.places.release()
