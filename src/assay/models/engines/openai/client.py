"""Keep one HTTP connection per thread. Each can be shut while its thread waits for it."""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

CONNECT_S = 10.0


class Clients:
    """Clients for any number of threads. A thread keeps its own client, and so its connection."""

    def __init__(self, key: str, login: tuple[str, str] | None, timeout_s: float) -> None:
        import httpx

        headers = {"Accept-Encoding": "identity"}  # prevents decompression bombs
        if key:
            headers["Authorization"] = f"Bearer {key}"
        self._connect = functools.partial(
            httpx.Client,
            headers=headers,
            auth=login,
            timeout=httpx.Timeout(timeout_s, connect=CONNECT_S, pool=None),
            limits=httpx.Limits(max_connections=1),
            verify=httpx.create_ssl_context(),  # once: the slowest part of the set-up
        )
        self._stopped = False
        self._lock = threading.Lock()
        self._opened: list[Client] = []
        self._local = threading.local()
        self.of_thread()  # fails now if a proxy named in the environment cannot be used

    def of_thread(self) -> Client:
        """Return the calling thread's client."""
        client: Client | None = getattr(self._local, "client", None)
        if client is None:
            client = self._local.client = Client(self._connect())
            with self._lock:
                self._opened.append(client)
            if self._stopped:
                client.stop()
        return client

    def stop(self) -> None:
        """End every present and later wait for the server. Callable from any thread."""
        with self._lock:
            self._stopped = True
            for client in self._opened:
                client.stop()

    def close(self) -> None:
        with self._lock:
            for client in self._opened:
                client.close()


class Client:
    """A client and the socket of its connection."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._stopped = False
        self._expired = threading.Event()

    @contextlib.contextmanager
    def stream(self, url: str, body: bytes | None) -> Iterator[httpx.Response]:
        """Send a request. Redirects are not followed, so that the key goes nowhere else."""
        method = "GET" if body is None else "POST"
        headers = {} if body is None else {"Content-Type": "application/json"}
        traced = {"trace": self._trace}
        with self._http.stream(
            method, url, content=body, headers=headers, extensions=traced
        ) as response:
            yield response

    @contextlib.contextmanager
    def deadline(self, seconds: float) -> Iterator[threading.Event]:
        """Shut the connection after so many seconds. The event says whether that happened.

        A server that sends a byte now and then never reaches a read timeout. Only a shutdown ends a
        thread that waits in the middle of headers or of a handshake.
        """
        self._expired = expired = threading.Event()

        def expire() -> None:
            expired.set()
            self._shut()

        timer = threading.Timer(seconds, expire)
        timer.daemon = True
        timer.start()
        try:
            yield expired
        finally:
            timer.cancel()

    def stop(self) -> None:
        """End the wait of the thread that uses the connection, and any later wait."""
        self._stopped = True
        self._shut()

    def close(self) -> None:
        self._http.close()
        with self._lock:
            self._forget()

    def _shut(self) -> None:
        with self._lock, contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)

    def _forget(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _trace(self, event: str, info: dict[str, Any]) -> None:
        """Take a second handle of every new socket: TLS makes the first one useless."""
        if not event.endswith(".connect_tcp.complete"):
            return
        connection: socket.socket = info["return_value"].get_extra_info("socket")
        with self._lock:
            self._forget()
            self._socket = connection.dup()
        if self._stopped or self._expired.is_set():
            self._shut()
