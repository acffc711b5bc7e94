"""Close connections on which no request begins, and those that are too many."""

from __future__ import annotations

import asyncio
import resource

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_S = 30.0  # for the head of a request, from the connection or its first byte
MOST_OPEN = 8192


def most_connections() -> int:
    """Return how many connections may be open. Workers need half of the files of a process."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_OPEN if files == resource.RLIM_INFINITY else min(MOST_OPEN, files // 2)


class ImpatientProtocol(AutoHTTPProtocol):  # type: ignore[misc]
    """Wait for the head of a request for a limited time. uvicorn itself waits for ever.

    Otherwise clients without a token could hold all connections by sending nothing.
    """

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Expect a request soon, unless there are too many connections."""
        super().connection_made(transport)
        if len(self.connections) > self.config.limit_concurrency:
            transport.abort()
        else:
            self._expect()

    def data_received(self, data: bytes) -> None:
        """Parse data. If it is a part of a head, expect the rest soon."""
        super().data_received(data)
        if not self._is_idle():
            self._forget()
        elif self._head_timer is None:
            self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing."""
        self._forget()
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _expect(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_S, self._give_up)

    def _forget(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if self._is_idle():
            self.transport.abort()
