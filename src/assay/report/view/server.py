"""Serve the pages of a results folder over HTTP. Nothing else can be requested."""

from __future__ import annotations

import gzip
import json
import socket
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from assay import __version__
from assay.data import codec
from assay.data.guard import (
    HOST,
    Refusal,
    collect_headers,
    listen,
    make_guard,
    make_url,
    require_token,
)
from assay.errors import AssayError, UsageError
from assay.progress import Reporter, Silent
from assay.report.pages.document import encode, render_document, security_policy
from assay.report.view.live import INTERVAL_S, Changes, LiveSite
from assay.work import run_in_background

SILENT = Silent()
PORT = 7300
MOST_STREAMS = 100  # open pages
MOST_CONNECTIONS = 400
BACKLOG = 64
# Pages that may show the viewer inside them: none, or notebooks on this machine.
NO_FRAMES = "frame-ancestors 'none'"
NOTEBOOK_FRAMES = (
    "frame-ancestors 'self' http://localhost:* http://127.0.0.1:* https://localhost:* "
    "https://127.0.0.1:* vscode-webview:"
)
HTML, JSON = "text/html; charset=utf-8", "application/json"
EVENTS = "text/event-stream; charset=utf-8"
STILL_THERE_S = 10.0  # between signs of life in a stream of events
IDLE_S = 30.0  # for a client to send a request, or to take an answer
LEAST_PACKED = 4_000  # bytes
NOTHING_ELSE = "default-src 'none'"
# On every answer. A page can neither be put into another one, nor read or linked by one.
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class ViewServer(ThreadingHTTPServer):
    """A server with a thread per connection, and one that looks for changes.

    Raise UsageError if others could reach it without a token, or if the port is in use.
    """

    daemon_threads, block_on_close = True, False

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
        require_token(host, token)
        self.frames = NOTEBOOK_FRAMES if in_notebook else NO_FRAMES
        self.title = f"{results.resolve().name} · assay"
        self.report = reporter.note  # an unexpected error
        self.streams = threading.BoundedSemaphore(MOST_STREAMS)
        self._connections = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._ending = threading.Event()
        self._host = host
        super().__init__(("", 0), ViewHandler, bind_and_activate=False)
        self.socket.close()  # the library's own: its bind asks the network for this machine's name
        self.socket = listen(host, port, BACKLOG)
        self.port = int(self.socket.getsockname()[1])
        self.guard = make_guard(host, self.port, token)
        self.site = LiveSite(results, reporter=reporter, data_dir=data_dir)

    @property
    def url(self) -> str:
        """The address to open. It has the token, if there is one."""
        host = socket.gethostname() if self._host in ("0.0.0.0", "::") else self._host
        token = self.guard.token
        return f"{make_url(host, self.port)}/{f'?token={token}' * bool(token)}"

    def serve(self) -> None:
        """Answer requests until ``end`` is called from another thread, or an interrupt."""
        run_in_background(self._watch, "assay-view-changes")
        try:
            self.serve_forever(poll_interval=0.2)
        finally:
            self._stop()

    def start(self) -> None:
        """Answer requests in a separate thread."""
        run_in_background(self.serve, "assay-view")

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

    def __exit__(self, *_: object) -> None:
        self.end()


class ViewHandler(BaseHTTPRequestHandler):
    """The GET and HEAD requests of one connection, which has its own thread."""

    server: ViewServer
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # not 0.9, which has answers without headers
    server_version, sys_version = f"assay/{__version__}", ""
    timeout = IDLE_S  # of the connection; see StreamRequestHandler

    def do_GET(self) -> None:
        """Check the request, then answer it."""
        try:
            self._answer()
        except (ConnectionError, TimeoutError):
            self.close_connection = True  # the client has gone

    do_HEAD = do_GET  # noqa: N815 - its name in the library

    def _answer(self) -> None:
        try:
            parts = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        except ValueError:
            self._refuse(Refusal(HTTPStatus.BAD_REQUEST, "the address is not valid"))
            return
        guard, headers = self.server.guard, collect_headers(self.headers.items())
        if refusal := guard.check(headers):
            self._refuse(refusal)
        elif not guard.admits(headers, query.get("token", "")):
            self._refuse(
                Refusal(HTTPStatus.UNAUTHORIZED, "open the address that assay view printed")
            )
        elif guard.token and "token" in query and parts.path == "/":
            self._remember()
        elif parts.path in ROUTES:
            self._route(ROUTES[parts.path], query)
        else:
            self._refuse(Refusal(HTTPStatus.NOT_FOUND, "there is no such page"))

    def _route(self, answer: Callable[[ViewHandler, dict[str, str]], None], query: Any) -> None:
        try:
            answer(self, query)
        except AssayError as error:
            self._refuse(Refusal(HTTPStatus.NOT_FOUND, str(error)))
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:  # one page that cannot be made must not end the others
            self.server.report(f"{self.path[:200]}: {type(error).__name__}: {error}")
            self._refuse(Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "this page cannot be built"))

    def send_document(self, _query: dict[str, str]) -> None:
        """Send the page, with the list of runs in it. The script asks for everything else."""
        site = self.server.site
        site.poll(least_s=1.0)
        content = render_document(
            [site.section("overview")], site.links(), None, title=self.server.title
        )
        self._send(content.encode("utf-8", "replace"), HTML, policy=security_policy(api=True))

    def send_section(self, query: dict[str, str]) -> None:
        """Send one page as HTML in JSON."""
        self.server.site.poll(least_s=1.0)
        self._send(encode(self.server.site.section(query.get("key", ""))), JSON)

    def send_block(self, query: dict[str, str]) -> None:
        """Send data of a page."""
        self._send(encode(self.server.site.block(query.get("name", ""))), JSON)

    def send_icon(self, _query: dict[str, str]) -> None:
        """Send no icon; browsers ask for one."""
        self._send(b"", "image/x-icon", HTTPStatus.NO_CONTENT)

    def send_events(self, _query: dict[str, str]) -> None:
        """Send the keys of pages that change, until the client goes or the server ends."""
        if not self.server.streams.acquire(blocking=False):
            self._refuse(Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open"))
            return
        try:
            self._stream()
        finally:
            self.server.streams.release()

    def _stream(self) -> None:
        self.close_connection = True
        self._send_head(HTTPStatus.OK, EVENTS, {"Connection": "close"}, NOTHING_ELSE)
        if self.command == "HEAD":
            return
        with self.server.site.subscribed() as changes:
            self.wfile.write(b"retry: 2000\n\n")
            while (change := changes.take(STILL_THERE_S)) is not None:
                self.wfile.write(_encode(change).encode())

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send the library's refusals, such as that of an unknown method, as all others."""
        status = HTTPStatus(code)
        self.close_connection = True
        self._refuse(Refusal(status, explain or message or status.phrase))

    def _remember(self) -> None:
        """Keep a session in the browser, and take the token out of the address."""
        guard = self.server.guard
        cookie = f"{guard.cookie}={guard.session}; HttpOnly; SameSite=Lax; Path=/"
        headers = {"Location": "/", "Set-Cookie": cookie}
        self._send(b"", HTML, HTTPStatus.SEE_OTHER, headers=headers)

    def _refuse(self, refusal: Refusal) -> None:
        headers = {}
        if refusal.status == HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = 'Bearer realm="assay view"'
        content = codec.dumps({"error": refusal.reason}).encode()
        self._send(content, JSON, refusal.status, headers=headers)

    def _send(
        self,
        content: bytes,
        kind: str,
        status: HTTPStatus = HTTPStatus.OK,
        *,
        policy: str = NOTHING_ELSE,
        headers: dict[str, str] | None = None,
    ) -> None:
        more = dict(headers or {})
        if len(content) >= LEAST_PACKED and "gzip" in self.headers.get("Accept-Encoding", ""):
            content = gzip.compress(content, compresslevel=1)
            more |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        if status != HTTPStatus.NO_CONTENT:
            more["Content-Length"] = str(len(content))
        self._send_head(status, kind, more, policy)
        if getattr(self, "command", "") != "HEAD":  # it is missing if the request has no sense
            self.wfile.write(content)

    def _send_head(
        self, status: HTTPStatus, kind: str, headers: dict[str, str], policy: str
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", f"{policy}; {self.server.frames}")
        for name, value in {**HEADERS, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the library
        """Print nothing for requests."""


def _encode(changes: Changes) -> str:
    """Return changes as events, or a comment as a sign of life."""
    events = ""
    if changes.keys:
        events += f"event: changed\ndata: {json.dumps(changes.keys)}\n\n"
    if changes.progress:
        progress = {key: [one.judged, one.total] for key, one in changes.progress.items()}
        events += f"event: progress\ndata: {json.dumps(progress)}\n\n"
    return events or ": \n\n"


ROUTES: dict[str, Callable[[ViewHandler, dict[str, str]], None]] = {
    "/": ViewHandler.send_document,
    "/api/section": ViewHandler.send_section,
    "/api/block": ViewHandler.send_block,
    "/api/events": ViewHandler.send_events,
    "/favicon.ico": ViewHandler.send_icon,
}
