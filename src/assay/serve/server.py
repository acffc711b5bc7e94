"""Listen, answer until a signal, and end without losing requests."""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from assay.data.guard import listen, make_url, require_token
from assay.serve.app import make_app
from assay.serve.options import ServeOptions
from assay.serve.service import Service
from assay.serve.telemetry import Log, LogHandler
from assay.work import run_in_background

KEEP_ALIVE_S = 75
BACKLOG = 2048
LAST_S = 5  # for connections to close after the drain
SWITCH_S = 0.0005  # as in judge processes: a worker must not wait long for the interpreter
HEAD_S = 30.0  # for the head of a request, from the connection or its first byte
MOST_OPEN = 8192


class JudgeServer:
    """A server that owns its sandbox. Create it, call ``run``, and ``end`` it from a thread."""

    def __init__(self, options: ServeOptions) -> None:
        require_token(options.host, options.token)
        self.log = Log(requests=options.log_requests)
        self._socket = listen(options.host, options.port, BACKLOG)
        self.port = int(self._socket.getsockname()[1])  # which the system chose if none was given
        self.url = make_url(options.host, self.port)
        try:
            self.service = Service(options, self.log)
            app = make_app(self.service)
        except BaseException:
            self._socket.close()
            raise
        logging.getLogger("uvicorn").handlers = [LogHandler(self.log)]
        logging.getLogger("uvicorn").propagate = False
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)  # workers need half of them
        most = MOST_OPEN if files == resource.RLIM_INFINITY else min(MOST_OPEN, files // 2)
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off",
            timeout_keep_alive=KEEP_ALIVE_S, backlog=BACKLOG, server_header=False, ws="none",
            timeout_graceful_shutdown=LAST_S, proxy_headers=False,
            limit_concurrency=most, http=ImpatientProtocol,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._server.handle_exit = handle_signals(self._server, self.service)

    def run(self, started: Callable[[], None] = lambda: None) -> None:
        """Answer requests until SIGTERM, Ctrl-C or ``end``."""
        if threading.current_thread() is threading.main_thread():  # it is this process's purpose
            sys.setswitchinterval(SWITCH_S)
            gc.freeze()
        try:
            self._load_benchmarks()
            self.log.write("listening", url=self.url, tier=self.service.identity.tier)
            started()
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()
            self.service.close()
            self.log.write("ended")

    def start(self) -> None:
        """Answer requests in a separate thread."""
        self._thread = run_in_background(self.run, "assay-serve")

    def end(self) -> None:
        """End a server that was started in a thread."""
        self._server.should_exit = True
        self._thread.join()

    def _load_benchmarks(self) -> None:
        """Load the benchmarks that were named, while the server already answers."""

        def load() -> None:
            for name in self.service.options.benchmarks:
                try:
                    self.service.catalogue.load(name)
                except Exception as error:
                    self.log.error(f"{name} cannot be loaded", str(error))

        run_in_background(load, "assay-serve-load")


def handle_signals(server: uvicorn.Server, service: Service) -> Callable[..., None]:
    """Return a handler that drains on the first signal, and ends at once on the second."""
    draining: list[asyncio.Task[None]] = []

    async def drain() -> None:
        await service.drain()
        server.should_exit = True

    def handle(number: int, _frame: FrameType | None) -> None:
        if draining:
            server.should_exit = True
            server.force_exit = number == signal.SIGINT
            return
        loop = asyncio.get_running_loop()  # the signal interrupts it
        draining.append(loop.create_task(drain()))

    return handle


class ImpatientProtocol(AutoHTTPProtocol):  # type: ignore[misc]
    """A protocol that waits for the head of a request for a limited time. uvicorn waits for ever.

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
