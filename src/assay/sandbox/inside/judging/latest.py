"""Cache the latest large items, identically on both sides of a pipe."""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")
ROOM = 8 << 20


class Latest(Generic[K, T]):
    """Hold the latest items whose sizes fit into a room. Only their order decides which."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self.items: dict[K, T] = {}
        self._sizes: dict[K, int] = {}

    def add(self, key: K, item: T, size: int) -> None:
        self.items[key] = item
        self._sizes[key] = size
        while len(self.items) > 1 and sum(self._sizes.values()) > self._room:
            oldest = next(iter(self.items))
            del self.items[oldest], self._sizes[oldest]
