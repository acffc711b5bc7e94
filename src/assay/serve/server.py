"""Listen, answer until a signal, and end without losing requests."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable
from types import FrameType

import uvicorn

from assay.data.guard import is_loopback
from assay.errors import UsageError
from assay.serve.app import make_app
from assay.serve.connections import ImpatientProtocol, most_connections
from assay.serve.logs import Log, LogHandler
from assay.serve.options import HOST, ServeOptions
from assay.serve.service import Service

KEEP_ALIVE_S = 75
BACKLOG = 2048
LAST_S = 5  # for connections to close after the drain
SWITCH_S = 0.0005  # as in judge processes: a worker must not wait long for the interpreter


class JudgeServer:
    """A server that owns its sandbox. Create it, call ``run``, and ``end`` it from a thread."""

    def __init__(self, options: ServeOptions) -> None:
        check_address(options)
        self.log = Log(requests=options.log_requests)
        self._socket = listen(options.host, options.port)
        try:
            self.service = Service(options, self.log)
        except BaseException:
            self._socket.close()
            raise
        logging.getLogger("uvicorn").handlers = [LogHandler(self.log)]
        logging.getLogger("uvicorn").propagate = False
        config = uvicorn.Config(
            make_app(self.service), log_config=None, access_log=False, lifespan="off",
            timeout_keep_alive=KEEP_ALIVE_S, backlog=BACKLOG, server_header=False, ws="none",
            timeout_graceful_shutdown=LAST_S, proxy_headers=False,
            limit_concurrency=most_connections(), http=ImpatientProtocol,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._server.handle_exit = handle_signals(self._server, self.service)

    @property
    def port(self) -> int:
        """The port, which the system chose if none was given."""
        return int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        """The address, without a token."""
        host = self.service.options.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

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
        self._thread = threading.Thread(target=self.run, name="assay-serve", daemon=True)
        self._thread.start()

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

        threading.Thread(target=load, name="assay-serve-load", daemon=True).start()


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


def check_address(options: ServeOptions) -> None:
    """Raise UsageError if others could reach the server without a token."""
    if not is_loopback(options.host) and not options.token:
        raise UsageError(
            f"--host {options.host}: others can reach this address. Give --token-file, or use "
            f"{HOST} and a tunnel such as ssh -L."
        )


def listen(host: str, port: int) -> socket.socket:
    """Return a socket at this address. Raise UsageError if it cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host.strip("[]"), port))
        opened.listen(BACKLOG)
    except OSError as error:
        opened.close()
        raise UsageError(
            f"--host {host} --port {port}: cannot be used ({error.strerror or error}). Choose "
            "another port, or 0 for any."
        ) from error
    return opened
