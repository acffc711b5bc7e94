"""Read a source ahead in a thread of its own, up to a total size."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

T = TypeVar("T")


class ReadAhead(Generic[T]):
    """The items of a source that a thread reads before they are needed. Use it as a context.

    The thread waits while the items that nobody has taken have ``most`` or more in ``size``
    together. So a slow reader holds the source back, and a few large items do not fill the memory.
    ``on_stop`` is called if the block ends before the source does, or the source failed, so that
    what the source waits for can be stopped. It is read to its end then, but its items are dropped.
    """

    def __init__(
        self,
        source: Iterable[T],
        size: Callable[[T], int],
        most: int,
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        self._size, self._most, self._on_stop = size, most, on_stop
        self._items: deque[T] = deque()
        self._total = 0
        self._error: BaseException | None = None
        self._ended = self.stopped = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(source,), daemon=True)

    def __enter__(self) -> ReadAhead[T]:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._changed:
            self.stopped = True
            is_complete = self._ended and self._error is None
            self._changed.notify_all()
        if not is_complete:
            self._on_stop()
        self._thread.join()

    def __iter__(self) -> Iterator[T | None]:
        """Yield the items, and None before every wait. Raise the source's error at its end."""
        while True:
            with self._changed:
                is_ready = self._is_ready()
            if not is_ready:
                yield None
            with self._changed:
                self._changed.wait_for(self._is_ready)
                if self.stopped:
                    return
                if not self._items:
                    break
                item = self._items.popleft()
                self._total -= self._size(item)
                self._changed.notify_all()
            yield item
        if self._error is not None:
            yield None
            raise self._error

    def _is_ready(self) -> bool:
        return bool(self._items) or self._ended or self.stopped

    def _read(self, source: Iterable[T]) -> None:
        try:
            for item in source:
                with self._changed:
                    self._changed.wait_for(lambda: self._total < self._most or self.stopped)
                    if not self.stopped:
                        self._items.append(item)
                        self._total += self._size(item)
                        self._changed.notify_all()
        except BaseException as error:
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
