"""One OpenAI-compatible server over HTTP: a request, its answer, and what failures mean."""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import json
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.distribution import install_hint
from assay.errors import ModelError, UsageError
from assay.models.engines.openai.answer import Answer
from assay.models.engines.openai.body import Complaint, complaint
from assay.models.engines.openai.client import Clients
from assay.models.engines.openai.events import events
from assay.models.engines.openai.limits import LISTING, AnswerLimits
from assay.models.engines.openai.listing import ListedModel, parse_listing
from assay.models.engines.openai.rate_limiter import retry_after_s

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from assay.models.engines.openai.client import Client

ERROR_BYTES = 1 << 16
LONGEST_QUOTE = 300
SHORTEST_SECRET = 4  # "x" as a stand-in for a key is in every message
PASSING = {408, 409, 425, 429}


class PassingError(Exception):
    """Worth another try, after ``after_s`` seconds if the server says so.

    ``is_slow``: it took all the time that an answer may take, so it is tried only once more.
    """

    def __init__(
        self,
        text: str,
        *,
        after_s: float = 0.0,
        unreachable: bool = False,
        is_slow: bool = False,
    ) -> None:
        super().__init__(text)
        self.after_s = after_s
        self.unreachable = unreachable
        self.is_slow = is_slow


class RefusedError(Exception):
    """The server does not want this request, however often it is sent."""

    def __init__(self, text: str, found: Complaint) -> None:
        super().__init__(text)
        self.complaint = found


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is. ``shown`` holds no credentials and is all that is ever told."""

    shown: str
    query: str = ""
    login: tuple[str, str] | None = None

    def of(self, endpoint: str) -> str:
        return f"{self.shown}/{endpoint}{'?' if self.query else ''}{self.query}"

    @property
    def secrets(self) -> list[str]:
        sent = base64.b64encode(":".join(self.login).encode()).decode() if self.login else ""
        return [sent, *(self.login or ()), *(v for _, v in urllib.parse.parse_qsl(self.query))]


def parse_address(url: str) -> Address:
    if not url:
        raise UsageError(
            "the openai engine needs the address of a server: give --base-url or OPENAI_BASE_URL"
        )
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("http", "https"):
        raise UsageError("the base URL is no address like http://127.0.0.1:8000/v1: correct it")
    name = f"[{host}]" if ":" in host else host
    shown = f"{parts.scheme}://{name}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
    login = None
    if parts.username is not None:
        found = (parts.username, parts.password or "")
        login = (urllib.parse.unquote(found[0]), urllib.parse.unquote(found[1]))
    return Address(shown, parts.query, login)


def check_key(key: str) -> str:
    """The key as it can be sent; what cannot be would be quoted by the error about it."""
    key = key.strip()
    if not key.isascii() or not key.isprintable():
        raise UsageError("OPENAI_API_KEY holds characters that no key has: set it anew")
    return key


class Server:
    """For any number of threads. ``missed`` counts the connections that failed since it last
    answered, whatever it said.
    """

    def __init__(self, address: Address, key: str, *, timeout_s: float) -> None:
        if importlib.util.find_spec("httpx") is None:
            raise ModelError(
                f"the openai engine needs httpx: install it with {install_hint('openai')}"
            )
        self.address = address
        self.missed = 0
        self._key, self._timeout_s = key, timeout_s
        try:
            self._clients = Clients(key, address.login, timeout_s)
        except (ImportError, ValueError) as error:  # of a proxy named in the environment
            raise ModelError(f"no connection to {address.shown} can be made: {error}") from error

    def models(self) -> list[ListedModel] | None:
        """What the server says it has; None if it does not tell."""
        try:
            with self._response("GET", "models", None, LISTING.seconds) as response:
                try:
                    told = _parsed(_read(response, LISTING.bytes))
                except ValueError as error:
                    raise PassingError(f"broken JSON in the list of models ({error})") from error
        except RefusedError:
            return None
        return parse_listing(told)

    def complete(self, endpoint: str, body: bytes, limits: AnswerLimits) -> Answer:
        answer = Answer(limits.characters)
        with self._response("POST", endpoint, body, limits.seconds) as response:
            try:
                for message in _messages(response, limits.bytes):
                    self._check(message)
                    answer.add(message)
            except ValueError as error:
                raise PassingError(f"broken JSON in the answer ({error})") from error
        if answer.finish_reason in ("", "abort", "error"):
            raise PassingError("the answer was broken off")
        return answer

    def wake(self) -> None:
        """End whatever waits for the server. Closing alone would not wake a thread that reads."""
        self._clients.stop()

    def close(self) -> None:
        self._clients.close()

    def _quoted(self, text: str) -> str:
        """The text, cut short, without our secrets: some servers quote these in their errors."""
        for secret in (self._key, *self.address.secrets):
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, "…")
        return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}…"

    @contextlib.contextmanager
    def _response(
        self, method: str, endpoint: str, body: bytes | None, seconds: float
    ) -> Iterator[httpx.Response]:
        """A good answer's; everything else becomes one of the errors above or ModelError."""
        slow = f"time-out: the answer took more than {seconds:g} s"
        client = self._clients.of_thread()
        with client.deadline(seconds) as expired:
            try:
                with self._exchange(client, method, endpoint, body) as response:
                    yield response
            except PassingError as error:
                if not expired.is_set():
                    raise
                raise PassingError(slow, is_slow=True) from error
            if expired.is_set():  # an answer without a length ends with its connection
                raise PassingError(slow, is_slow=True)

    @contextlib.contextmanager
    def _exchange(
        self, client: Client, method: str, endpoint: str, body: bytes | None
    ) -> Iterator[httpx.Response]:
        import httpx

        try:
            with client.stream(method, self.address.of(endpoint), body) as response:
                self.missed = 0
                if not response.is_success:
                    self._fail(response, endpoint)
                if (encoding := response.headers.get("Content-Encoding", "identity")) != "identity":
                    raise PassingError(self._quoted(f"the answer is packed ({encoding})"))
                yield response
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            self.missed += 1
            why = self._quoted(f"no connection: {error}")
            raise PassingError(why, unreachable=True) from error
        except httpx.TimeoutException as error:
            raise PassingError(f"time-out: nothing came for {self._timeout_s:g} s") from error
        except httpx.RequestError as error:
            raise PassingError(self._quoted(f"connection lost: {error}")) from error

    def _fail(self, response: httpx.Response, endpoint: str) -> None:
        raw = b"".join(_pieces(response, ERROR_BYTES))
        try:
            found = complaint(_parsed(raw))
        except ValueError:
            found = complaint(raw.decode(errors="replace"))
        status, shown = response.status_code, self.address.shown
        said = self._quoted(f"{status}: {found.text or response.reason_phrase}")
        if status in (401, 403):
            advice = "set another OPENAI_API_KEY" if self._key else "set OPENAI_API_KEY"
            raise ModelError(f"{shown} does not let us in ({said}): {advice}")
        if status == 402 or found.code == "insufficient_quota":
            raise ModelError(f"{shown} wants to be paid ({said}): see to it, then run again")
        if response.is_redirect:
            raise ModelError(f"{shown} has moved ({status}): give its new address as --base-url")
        if status == 404 and endpoint != "models":
            raise ModelError(
                f"{shown} has no {endpoint}, or not this model ({said}): check the name after "
                "openai: and --base-url, which mostly ends in /v1"
            )
        if status in PASSING or status >= 500:
            raise PassingError(said, after_s=retry_after_s(response.headers.get("Retry-After", "")))
        raise RefusedError(said, found)

    def _check(self, message: Any) -> None:
        """An error that comes when the answer has already begun."""
        if not isinstance(message, dict) or not message.get("error"):
            return
        found = complaint(message)
        said = self._quoted(f"the server says: {found.text}")
        if found.code[:1] == "4" and found.code.isdecimal() and int(found.code) not in PASSING:
            raise RefusedError(said, found)
        raise PassingError(said)


def _messages(response: httpx.Response, most: int) -> Iterator[Any]:
    """The chunks of a stream, or the one message of a server that does not stream."""
    if "text/event-stream" not in response.headers.get("Content-Type", ""):
        yield _parsed(_read(response, most))
        return
    # Read to the end, not to the mark of it: only then is the connection good for another request.
    for data in events(_bounded(response, most)):
        if data.strip() != b"[DONE]":
            yield _parsed(data)


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _bounded(response: httpx.Response, most: int) -> Iterator[bytes]:
    """Give the body as it comes, ValueError when it is longer than ``most`` bytes."""
    left = most
    for piece in response.iter_raw():
        left -= len(piece)
        if left < 0:
            raise ValueError(f"more than {most:,} bytes")
        yield piece


def _read(response: httpx.Response, most: int) -> bytes:
    return b"".join(_bounded(response, most))


def _pieces(response: httpx.Response, most: int) -> Iterator[bytes]:
    """Give the start of a body, at least ``most`` bytes of it if it has so many."""
    for piece in response.iter_raw():
        yield piece
        most -= len(piece)
        if most <= 0:
            return
