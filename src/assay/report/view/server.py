"""Serve the pages of a results folder over HTTP."""

from __future__ import annotations

import socket
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from types import TracebackType
from typing import Any

from assay.data.guard import is_loopback, make_guard
from assay.errors import UsageError
from assay.progress import Reporter, Silent
from assay.report.view.handler import ViewHandler
from assay.report.view.live import INTERVAL_S, LiveSite

SILENT = Silent()
HOST, PORT = "127.0.0.1", 7300
MOST_STREAMS = 100  # open pages
MOST_CONNECTIONS = 400
# Pages that may show the viewer inside them: none, or notebooks on this machine.
NO_FRAMES = "frame-ancestors 'none'"
NOTEBOOK_FRAMES = (
    "frame-ancestors 'self' http://localhost:* http://127.0.0.1:* https://localhost:* "
    "https://127.0.0.1:* vscode-webview:"
)


class ViewServer(ThreadingHTTPServer):
    """A server with a thread per connection, and one that looks for changes.

    Raise UsageError if others could reach it without a token, or if the port is in use.
    """

    daemon_threads, block_on_close = True, False
    request_queue_size = 64

    def __init__(
        self,
        results: Path,
        *,
        host: str = HOST,
        port: int = PORT,
        token: str = "",
        in_notebook: bool = False,
        reporter: Reporter = SILENT,
        data_dir: Path | None = None,
    ) -> None:
        if not results.is_dir():
            raise UsageError(
                f"{results}: is not a folder. Give a results folder, or start a run with "
                "`assay eval`."
            )
        if not is_loopback(host) and not token:
            raise UsageError(
                f"--host {host}: others can reach this address. Give --token-file, or use "
                f"{HOST} and a tunnel such as ssh -L."
            )
        self.frames = NOTEBOOK_FRAMES if in_notebook else NO_FRAMES
        self.title = f"{results.resolve().name} · assay"
        self.streams = threading.BoundedSemaphore(MOST_STREAMS)
        self._connections = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._ending = threading.Event()
        self._note = reporter.note
        self._host = host
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host.strip("[]"), port), ViewHandler)
        except OSError as error:
            raise UsageError(
                f"--host {host} --port {port}: cannot be used ({error.strerror}). Choose another "
                "port, or 0 for any."
            ) from error
        self.guard = make_guard(host, self.port, token)
        self.site = LiveSite(results, reporter=reporter, data_dir=data_dir)

    @property
    def port(self) -> int:
        """The port, which the system chose if none was given."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address to open. It has the token, if there is one."""
        host = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(
            self._host, self._host
        )
        shown = f"[{host.strip('[]')}]" if ":" in host else host
        return f"http://{shown}:{self.port}/{f'?token={self.guard.token}' * bool(self.guard.token)}"

    def report(self, line: str) -> None:
        """Report an unexpected error."""
        self._note(line)

    def serve(self) -> None:
        """Answer requests until ``end`` is called from another thread, or an interrupt."""
        threading.Thread(target=self._watch, name="assay-view-changes", daemon=True).start()
        try:
            self.serve_forever(poll_interval=0.2)
        finally:
            self._stop()

    def start(self) -> None:
        """Answer requests in a separate thread."""
        threading.Thread(target=self.serve, name="assay-view", daemon=True).start()

    def end(self) -> None:
        """End the server and the connections of all clients. It cannot be started again."""
        self.shutdown()
        self._stop()

    def _stop(self) -> None:
        self._ending.set()
        self.site.end()
        self.server_close()

    def _watch(self) -> None:
        """Look for changes while a page is open."""
        while not self._ending.wait(INTERVAL_S):
            if self.site.is_watched:
                try:
                    self.site.poll()
                except Exception as error:  # such as a folder that is removed just now
                    self.report(f"{self.site.results}: {error}")

    def server_bind(self) -> None:
        """Bind without asking the network for this machine's name, which can take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self._host, self.port

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection. With too many, close it at once."""
        if not self._connections.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started
            self._connections.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection, in its own thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Report an unexpected error as one line. A client that goes away is none."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            self.report(f"{type(error).__name__}: {error}")

    def __enter__(self) -> ViewServer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()
