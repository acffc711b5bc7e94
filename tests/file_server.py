"""A real HTTP server on loopback that can be told to misbehave."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class FileServer:
    """``cuts``: after so many bytes of a body the connection ends, one request after another."""

    files: dict[str, bytes]
    url: str = ""
    statuses: dict[str, list[int]] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    delay_s: float = 0.0
    # Instead of an answer: any bytes, headers included.
    raw: Callable[[], Iterable[bytes]] | None = None
    stopped: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def headers(self, name: str) -> list[str | None]:
        return [headers.get(name) for _, headers in self.requests]


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[FileServer]:
    served = FileServer(files)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.requests.append((self.path, dict(self.headers)))
            if served.raw:
                for piece in served.raw():
                    if served.stopped.is_set():
                        return
                    self.wfile.write(piece)
                return
            if statuses := served.statuses.get(self.path):
                self.send_error(statuses.pop(0))
                return
            if self.path in served.redirects:
                self.send_response(302)
                self.send_header("Location", served.redirects[self.path])
                self.end_headers()
                return
            body = served.files.get(self.path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            time.sleep(served.delay_s)
            self.wfile.write(body[: served.cuts.pop(0)] if served.cuts else body)

        def log_message(self, *arguments: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *arguments: object) -> None:
            """Clients that hang up are part of the tests."""

    server = Server(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        served.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()
