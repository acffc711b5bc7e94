"""Call a judge service over HTTP, again if it is busy or the connection breaks.

Judging is pure: to send a program twice does no harm.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from assay.data.reading import parse_json
from assay.errors import SandboxError

T = TypeVar("T")
INTERFACE = 1  # of the service
ATTEMPTS = 5  # of a request whose answer breaks off
CONNECT_ATTEMPTS = 6
FIRST_PAUSE_S, MOST_PAUSE_S = 0.25, 8.0
PATIENCE_S = 900.0  # with a server that is busy
READ_S = 900.0  # without a byte
LONGEST_LINE = 256 << 20
BUSY = (429, 503, 504)
BROKEN = (OSError, http.client.HTTPException)
NDJSON = "application/x-ndjson"
JUDGE_HEADER = "Assay-Judge"  # what the service is, in JSON


class ServiceRefusedError(Exception):
    """The service has answered a request with another status than 200."""

    def __init__(self, status: int, content: bytes, retry_after: str) -> None:
        try:
            data = parse_json(content)
            self.detail = str(data["detail"])
        except (ValueError, KeyError, TypeError):
            data, self.detail = {}, content[:200].decode(errors="replace")
        super().__init__(f"{status} {self.detail}")
        self.status = status
        names = data.get("unknown_tests") if status == 409 else None
        # Of tests that it does not hold.
        self.unknown_tests = list(map(str, names)) if isinstance(names, list) else []
        self.pause_s = float(retry_after) if retry_after.isdigit() else 1.0


class JudgeClient:
    """The connections to a service, which threads share. ``close`` breaks all of them."""

    def __init__(self, url: str, token: str = "") -> None:
        """Parse the URL. A token may also be its password. Raise SandboxError."""
        try:
            parts = urlsplit(url)
            port = parts.port
            host = (parts.hostname or "").encode("idna").decode()  # as it is looked up
        except ValueError:
            parts, port, host = urlsplit(""), None, ""
        is_http = parts.scheme in ("http", "https") and url.isascii() and url.isprintable()
        if not is_http or not host or parts.query:
            raise SandboxError(
                f"{url!r}: is not the address of a judge service. Give http://HOST:PORT."
            )
        if not (token.isascii() and token.isprintable()):
            raise SandboxError("token: has characters that no token has. Give that of the service.")
        self._headers = {}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        elif parts.password:
            pair = f"{unquote(parts.username or '')}:{unquote(parts.password)}"
            self._headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        https = parts.scheme == "https"
        port = port or (443 if https else 80)
        kind = http.client.HTTPSConnection if https else http.client.HTTPConnection
        self._make_connection = functools.partial(kind, host, port, timeout=READ_S)
        self._path = parts.path.rstrip("/")
        self.address = f"{parts.scheme}://{host}:{port}{self._path}"
        self._lock = threading.Lock()
        self._open: set[http.client.HTTPConnection] = set()
        self._idle: list[http.client.HTTPConnection] = []  # those that no request uses
        self._closed = threading.Event()
        self._judge: Any = None  # what the service was when it was first asked

    def get(self, path: str) -> dict[str, Any]:
        """Return the JSON object at a path. Raise SandboxError."""
        return next(self._persist(path))

    def about(self) -> dict[str, Any]:
        """Return what the service says about itself.

        Raise SandboxError if it is not one of ours, or speaks another version of the interface.
        """
        data = self.get("/about")
        try:
            interface = data["judge"]["interface"]
        except (KeyError, TypeError) as error:
            raise SandboxError(
                f"{self.address}: is not a judge service of assay. Start one with assay serve."
            ) from error
        if interface != INTERFACE:
            raise SandboxError(
                f"judge service {self.address}: has version {interface} of the interface, this "
                f"client {INTERFACE}. Use the same version of assay on both machines."
            )
        self._judge = data["judge"]
        return data

    def judge_all(
        self,
        programs: Sequence[T],
        make_body: Callable[[list[T], set[str]], Mapping[str, Any]],
    ) -> Iterator[tuple[T, dict[str, Any]]]:
        """Yield every program with its verdict's line. Send again what got lost on the way.

        ``make_body`` also gets the names of tests that the service does not hold. An answer that
        breaks off has no last line; what it lacks is sent again. A request that is too large is
        sent in halves. Raise SandboxError, also if the service is not the one that ``about``
        described.
        """
        left = dict(enumerate(programs))
        missing: set[str] = set()
        for _ in range(ATTEMPTS):
            order = list(left)
            body = {**make_body([left[n] for n in order], missing), "stream": True}
            content = json.dumps(body, separators=(",", ":")).encode()
            try:
                for line in self._persist("/judge", content):
                    if "index" in line:
                        yield left.pop(number_of(line, order, left)), line
            except ServiceRefusedError as error:
                if error.unknown_tests:
                    missing |= set(error.unknown_tests)
                    continue
                if len(left) == 1:
                    raise SandboxError(
                        "program: is larger than the judge service accepts, with its tests. Start "
                        "the service with a larger --body-mb."
                    ) from None
                rest, middle = list(left.values()), len(left) // 2
                yield from self.judge_all(rest[:middle], make_body)
                yield from self.judge_all(rest[middle:], make_body)
                return
            if not left:
                return
        raise self._error("ended the connection before all verdicts had arrived")

    def close(self) -> None:
        """Break all connections. Requests that are being answered end with an error."""
        self._closed.set()
        with self._lock:
            connections, self._open, self._idle = self._open, set(), []
        for connection in connections:
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._closed = threading.Event()

    def _persist(self, path: str, body: bytes = b"") -> Iterator[dict[str, Any]]:
        """Try until the server answers. Nothing is tried again once a line has been yielded.

        A busy server is waited for as long as it says, and a broken connection is tried again a few
        times with growing pauses. ``close`` ends the wait.
        """
        failures, deadline = 0, time.monotonic() + PATIENCE_S
        closed = self._closed
        while True:
            lines = self._request(path, body)
            try:
                first = next(lines)
            except ServiceRefusedError as error:
                if error.status in (401, 403):
                    remedy = "Check the token."
                    raise self._error(f"authentication failed ({error})", remedy) from error
                if error.unknown_tests or error.status == 413:  # the caller sends something else
                    raise
                if error.status not in BUSY:
                    raise self._error(f"refused a request ({error})") from error
                if time.monotonic() > deadline:
                    remedy = "Try again later."
                    raise self._error(f"is busy ({error.detail})", remedy) from error
                pause_s = error.pause_s
            except BROKEN as error:
                failures += 1
                if failures >= CONNECT_ATTEMPTS or closed.is_set():
                    reason = str(error) or type(error).__name__
                    raise self._error(f"does not answer ({reason})") from error
                pause_s = min(MOST_PAUSE_S, FIRST_PAUSE_S * 2**failures)
            else:
                break
            if closed.wait(pause_s):
                raise self._error("was closed")
        yield first
        with contextlib.suppress(*BROKEN):
            yield from lines

    def _request(self, path: str, body: bytes) -> Iterator[dict[str, Any]]:
        """Yield the answer to a GET, or the lines of the answer to a POST as they come."""
        connection = self._connect()
        finished = False
        try:
            headers = dict(self._headers)
            if body:
                headers |= {"Content-Type": "application/json", "Accept": NDJSON}
            method = "POST" if body else "GET"
            connection.request(method, f"{self._path}{path}", body or None, headers)
            response = connection.getresponse()
            if response.status != 200:
                retry_after = response.headers.get("Retry-After", "")
                raise ServiceRefusedError(response.status, response.read(1 << 20), retry_after)
            if not body:  # asked before programs are sent, or instead: the connection ends
                yield self._parse(response.read())
                return
            self._check_judge(response.headers.get(JUDGE_HEADER, ""))
            while line := response.readline(LONGEST_LINE):
                answer = self._parse(line)
                if answer.get("end"):
                    response.read()
                    finished = True
                yield answer
            if not finished:  # cut off between two lines
                raise http.client.IncompleteRead(b"")
        finally:
            self._release(connection, usable=finished)

    def _check_judge(self, header: str) -> None:
        """Raise SandboxError if the service has changed, before any of its verdicts is used."""
        try:
            judge = parse_json(header)
        except ValueError:
            judge = header
        if judge != self._judge:
            raise self._error(
                f"it has changed from {self._judge} to {judge}",
                "Judge all programs with the new one: use --fresh, or a new RemoteJudge.",
            )

    def _parse(self, line: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError) as error:
            if not line.endswith(b"\n"):  # cut off
                raise http.client.IncompleteRead(line) from error
            raise self._error("sent an answer that is not JSON") from error
        if not isinstance(answer, dict):
            raise self._error("sent an unexpected answer")
        return answer

    def _connect(self) -> http.client.HTTPConnection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            connection = self._make_connection()
            self._open.add(connection)
            return connection

    def _release(self, connection: http.client.HTTPConnection, *, usable: bool) -> None:
        """Keep a connection for the next request.

        If one is broken, those that wait for a request probably are too: all of them are closed.
        """
        with self._lock:
            if usable and connection in self._open:
                self._idle.append(connection)
                return
            broken, self._idle = [connection, *self._idle], []
            self._open.difference_update(broken)
        for one in broken:
            one.close()

    def _error(self, what: str, remedy: str = "Check the service and its address.") -> SandboxError:
        return SandboxError(f"judge service {self.address}: {what}. {remedy}")


def number_of(line: Mapping[str, Any], order: Sequence[int], left: Container[int]) -> int:
    """Return which program a verdict is about. Raise SandboxError if none is wanted on it."""
    index = line["index"]
    if not isinstance(index, int) or not 0 <= index < len(order) or order[index] not in left:
        raise SandboxError("judge service: sent a verdict on a program that it was not given.")
    return order[index]
