"""An OpenAI-compatible server on loopback that misbehaves when it is told to."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
CHUNKS = 3
FAULTS = (
    "429", "429-after", "500", "503", "hang", "hang-half", "close", "broken-json", "broken-body",
    "half-stream", "cut-stream", "error-in-stream", "html",
)  # fmt: skip


@dataclass
class FaultyServer:
    """``fault`` is asked for each request: the prompt, and how often it came before."""

    url: str = ""
    models: list[dict[str, Any]] = field(default_factory=lambda: [{"id": "tiny", "created": 1}])
    fault: Callable[[str, int], str] = lambda _prompt, _before: ""
    text: Callable[[str], str] = lambda prompt: f"said {prompt}"
    reasoning: str = ""
    logprobs: tuple[float, ...] = ()
    streams: bool = True
    refuses: tuple[str, ...] = ()  # fields, each with an error that names it
    refusal: str = "Unrecognized request argument supplied: {}"
    retry_after: str = "0.2"
    delay_s: float = 0.0
    key: str = ""  # who has another is not let in
    # A status and an answer for some paths and bodies.
    own_answer: Callable[[str, dict[str, Any]], tuple[int, Any] | None] = lambda _path, _body: None
    # Instead of an answer, or of the list of models: any bytes, headers included.
    raw: Callable[[], Iterable[bytes]] | None = None
    raw_models: Callable[[], Iterable[bytes]] | None = None
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    busiest: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    connections: list[socket.socket] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    _busy: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[str, str]:
        prompt = said_to(body)
        with self._lock:
            self._busy += 1
            self.busiest = max(self.busiest, self._busy)
            self.times.append(time.monotonic())
            self.bodies.append(body)
            self.headers.append(headers)
            self.paths.append(path)
            before = self.counts[prompt]
            self.counts[prompt] += 1
        return prompt, self.fault(prompt, before)

    def end(self) -> None:
        with self._lock:
            self._busy -= 1


def said_to(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"] if "messages" in body else body["prompt"])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: FaultyServer

    def do_GET(self) -> None:
        if self._refused_entry():
            return
        if self.served.raw_models:
            self._raw(self.served.raw_models())
        elif not self.path.startswith("/v1/models"):
            self._json(404, {"detail": "Not Found"})
        else:
            self._json(200, {"object": "list", "data": self.served.models})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._refused_entry():
            return
        if (own := self.served.own_answer(self.path, body)) is not None:
            self._json(*own)
            return
        prompt, fault = self.served.begin(self.path, body, dict(self.headers))
        try:
            time.sleep(self.served.delay_s)
            if refused := next((name for name in self.served.refuses if name in body), None):
                self._json(400, {"error": {"message": self.served.refusal.format(refused)}})
            elif self.served.raw:
                self._raw(self.served.raw())
            elif fault:
                getattr(self, "_" + fault.replace("-", "_"), self._status)(fault)
            elif self.served.streams and body.get("stream"):
                self._stream(body, prompt)
            else:
                self._json(200, self._whole(body, prompt))
        finally:
            self.served.end()

    def _refused_entry(self) -> bool:
        sent = self.headers.get("Authorization", "")
        if not self.served.key or sent == f"Bearer {self.served.key}":
            return False
        self._json(401, {"error": {"message": f"Incorrect API key provided: {sent}"}})
        return True

    def _stream(self, body: dict[str, Any], prompt: str) -> None:
        self._start_stream()
        for chunk in self._chunks(body, prompt):
            self._event(json.dumps(chunk))
        if "stream_options" in body:
            self._event(json.dumps({"choices": [], "usage": USAGE}))
        self._event("[DONE]")
        self._piece(b"")

    def _chunks(self, body: dict[str, Any], prompt: str) -> Iterator[dict[str, Any]]:
        """A server starts with the role, says its reasoning, then the text in pieces."""
        chat, text = "messages" in body, self.served.text(prompt)
        if chat:
            yield _chunk({"delta": {"role": "assistant", "content": None}})
        if self.served.reasoning:
            yield _chunk({"delta": {"reasoning_content": self.served.reasoning}})
        size = len(text) // CHUNKS + 1
        for start in range(0, len(text), size):
            piece = text[start : start + size]
            yield _chunk({"delta": {"content": piece}} if chat else {"text": piece})
        last: dict[str, Any] = {"delta": {}} if chat else {"text": ""}
        if self.served.logprobs and body.get("logprobs"):
            last["logprobs"] = (
                {"content": [{"token": "t", "logprob": p} for p in self.served.logprobs]}
                if chat
                else {"token_logprobs": [None, *self.served.logprobs]}
            )
        yield _chunk({**last, "finish_reason": "stop"})

    def _whole(self, body: dict[str, Any], prompt: str) -> dict[str, Any]:
        text = self.served.text(prompt)
        said = {"message": {"content": text}} if "messages" in body else {"text": text}
        return {"choices": [{**said, "finish_reason": "length"}], "usage": USAGE}

    def _raw(self, pieces: Iterable[bytes]) -> None:
        """Send until the client has enough or the test is over."""
        self.close_connection = True
        for piece in pieces:
            if self.served.released.is_set():
                break
            self.wfile.write(piece)
            self.wfile.flush()

    def _status(self, fault: str) -> None:
        self._json(int(fault), {"error": {"message": f"fault {fault}"}})

    def _429_after(self, _: str) -> None:
        self._json(
            429, {"error": {"message": "slow down"}}, {"Retry-After": self.served.retry_after}
        )

    def _hang(self, _: str) -> None:
        self.served.released.wait(60)
        self.close_connection = True

    def _hang_half(self, fault: str) -> None:
        self._start_stream()
        self._event(json.dumps(_chunk({"delta": {"content": "half"}})))
        self._hang(fault)

    def _close(self, _: str) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _broken_json(self, _: str) -> None:
        self._start_stream()
        self._event('{"choices": [{"delta": {"content": "x"')
        self._event("[DONE]")
        self._piece(b"")

    def _broken_body(self, _: str) -> None:
        self._json(200, '{"choices": [')

    def _html(self, _: str) -> None:
        self._json(200, "<html>busy</html>", {"Content-Type": "text/html"})

    def _half_stream(self, _: str) -> None:
        """It ends as if all were well."""
        self._start_stream()
        self._event(json.dumps(_chunk({"delta": {"content": "half"}})))
        self._event("[DONE]")
        self._piece(b"")

    def _cut_stream(self, fault: str) -> None:
        self._start_stream()
        self._event(json.dumps(_chunk({"delta": {"content": "half"}})))
        self.wfile.write(b'1f\r\ndata: {"choi')
        self._close(fault)

    def _error_in_stream(self, _: str) -> None:
        self._start_stream()
        self._event(json.dumps({"error": {"message": "out of memory", "code": 500}}))
        self._piece(b"")

    def _start_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _event(self, data: str) -> None:
        self._piece(f"data: {data}\n\n".encode())

    def _piece(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _json(self, status: int, answer: Any, headers: dict[str, str] | None = None) -> None:
        raw = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *arguments: object) -> None:
        pass


def _chunk(choice: dict[str, Any]) -> dict[str, Any]:
    return {"object": "chunk", "choices": [{"index": 0, "finish_reason": None, **choice}]}


class _Server(ThreadingHTTPServer):
    request_queue_size = 64
    daemon_threads = True

    def __init__(self, handler: type[_Handler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.connections: list[socket.socket] = []

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self.connections.append(connection)
        return connection, address

    def handle_error(self, *arguments: object) -> None:
        """Clients that hang up are part of the tests."""


@contextmanager
def serving(**settings: Any) -> Iterator[FaultyServer]:
    served = FaultyServer(**settings)
    server = _Server(type("Handler", (_Handler,), {"served": served}))
    served.connections = server.connections
    served.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        served.released.set()
        server.shutdown()
        server.server_close()
        for connection in server.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        thread.join()
