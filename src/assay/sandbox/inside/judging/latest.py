"""Cache the latest large items, identically on both sides of a pipe."""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")
ROOM = 8 << 20


class Latest(Generic[K, T]):
    """Hold the latest items whose sizes fit into ``ROOM``. Only their order decides which."""

    def __init__(self) -> None:
        self.items: dict[K, T] = {}
        self._sizes: dict[K, int] = {}

    def add(self, key: K, item: T, size: int) -> None:
        self.items[key] = item
        self._sizes[key] = size
        while len(self.items) > 1 and sum(self._sizes.values()) > ROOM:
            oldest = next(iter(self.items))
            del self.items[oldest], self._sizes[oldest]
