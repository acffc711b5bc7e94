"""Send requests to an OpenAI-compatible server over HTTP, and classify its failures."""

from __future__ import annotations

import base64
import contextlib
import email.utils
import importlib.util
import json
import urllib.parse
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from assay.errors import ModelError, UsageError, install_hint
from assay.models.engines.openai.answer import (
    LISTING,
    AnswerLimits,
    ListedModel,
    PartialCompletion,
    events,
    parse_listing,
)
from assay.models.engines.openai.body import Complaint, complaint
from assay.models.engines.openai.client import Clients

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from assay.models.engines.openai.client import Client

ERROR_BYTES = 1 << 16
LONGEST_QUOTE = 300
SHORTEST_SECRET = 4  # a placeholder key such as "x" occurs in every message
PASSING = {408, 409, 425, 429}
NOT_IMPLEMENTED = 501


class PassingError(Exception):
    """A failure worth a retry, after ``after_s`` seconds if the server says so.

    ``is_slow``: it used the whole time of an answer, so it is retried only once.
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


class ServerRefusedError(Exception):
    """The server refuses this request, and would refuse it again."""

    def __init__(self, text: str, found: Complaint) -> None:
        super().__init__(text)
        self.complaint = found


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of a server. ``shown`` has no credentials; messages use nothing else."""

    shown: str
    query: str = ""
    login: tuple[str, str] | None = None

    def of(self, endpoint: str) -> str:
        """Return the address of an endpoint. One with a slash is not part of OpenAI's interface."""
        base = self.shown.removesuffix("/v1") if endpoint.startswith("/") else f"{self.shown}/"
        return f"{base}{endpoint}{'?' if self.query else ''}{self.query}"

    @property
    def secrets(self) -> list[str]:
        sent = base64.b64encode(":".join(self.login).encode()).decode() if self.login else ""
        return [sent, *(self.login or ()), *(v for _, v in urllib.parse.parse_qsl(self.query))]


def parse_address(url: str) -> ServerAddress:
    if not url:
        raise UsageError(
            "the openai engine needs the address of a server. Give --base-url or OPENAI_BASE_URL."
        )
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("http", "https"):
        raise UsageError(
            "--base-url: is not an address such as http://127.0.0.1:8000/v1. Correct it."
        )
    name = f"[{host}]" if ":" in host else host
    address = f"{parts.scheme}://{name}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
    login = None
    if parts.username is not None:
        user = (parts.username, parts.password or "")
        login = (urllib.parse.unquote(user[0]), urllib.parse.unquote(user[1]))
    return ServerAddress(address, parts.query, login)


def check_key(key: str) -> str:
    """Return the key if it can be sent. An HTTP error about a bad key would quote it."""
    key = key.strip()
    if not key.isascii() or not key.isprintable():
        raise UsageError(
            "OPENAI_API_KEY: has characters that are not allowed in a key. Set it again."
        )
    return key


class ModelServer:
    """A server, for any number of threads.

    ``missed`` counts the failed connections since the last answer of any kind.
    """

    def __init__(self, address: ServerAddress, key: str, *, timeout_s: float) -> None:
        if importlib.util.find_spec("httpx") is None:
            raise ModelError(f"httpx: is not installed. Run {install_hint('openai')}.")
        self.address = address
        self.missed = 0
        self._key, self._timeout_s = key, timeout_s
        try:
            self._clients = Clients(key, address.login, timeout_s)
        except (ImportError, ValueError) as error:  # of a proxy named in the environment
            raise ModelError(
                f"{address.shown}: cannot connect ({error}). Check the proxy settings."
            ) from error

    def models(self) -> list[ListedModel] | None:
        """Return the models that the server lists; None if it does not list them."""
        try:
            return parse_listing(self.ask("models", None, LISTING, "the list of models"))
        except ServerRefusedError:
            return None

    def complete(self, endpoint: str, body: bytes, limits: AnswerLimits) -> PartialCompletion:
        answer = PartialCompletion(limits.characters)
        with self._response(endpoint, body, limits.seconds) as response:
            try:
                for message in _messages(response, limits.bytes):
                    self._check(message)
                    answer.add(message)
            except ValueError as error:
                raise PassingError(f"the answer is not valid ({error})") from error
        if answer.finish_reason in ("", "abort", "error"):
            raise PassingError("the answer ended early")
        return answer

    def ask(
        self, endpoint: str, body: bytes | None, limits: AnswerLimits, noun: str = "the answer"
    ) -> Any:
        """Return the answer to a question that is not about a completion."""
        with self._response(endpoint, body, limits.seconds) as response:
            try:
                return _parse(b"".join(_read_bounded(response, limits.bytes)))
            except ValueError as error:
                raise PassingError(f"{noun} is not valid ({error})") from error

    def wake(self) -> None:
        """End whatever waits for the server. Closing alone would not wake a thread that reads."""
        self._clients.stop()

    def close(self) -> None:
        self._clients.close()

    def _quote(self, text: str) -> str:
        """Return the text, shortened and without secrets: some servers quote these in errors."""
        for secret in (self._key, *self.address.secrets):
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, "…")
        return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}…"

    @contextlib.contextmanager
    def _response(
        self, endpoint: str, body: bytes | None, seconds: float
    ) -> Iterator[httpx.Response]:
        """Yield a successful response. All else becomes one of the errors above or ModelError."""
        slow = f"timeout: the answer took more than {seconds:g} s"
        client = self._clients.of_thread()
        with client.deadline(seconds) as expired:
            try:
                with self._exchange(client, endpoint, body) as response:
                    yield response
            except PassingError as error:
                if not expired.is_set():
                    raise
                raise PassingError(slow, is_slow=True) from error
            if expired.is_set():  # an answer without a length ends with its connection
                raise PassingError(slow, is_slow=True)

    @contextlib.contextmanager
    def _exchange(
        self, client: Client, endpoint: str, body: bytes | None
    ) -> Iterator[httpx.Response]:
        import httpx

        try:
            with client.stream(self.address.of(endpoint), body) as response:
                self.missed = 0
                if not response.is_success:
                    self._fail(response, endpoint)
                if (encoding := response.headers.get("Content-Encoding", "identity")) != "identity":
                    raise PassingError(self._quote(f"the answer is compressed ({encoding})"))
                yield response
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            self.missed += 1
            why = self._quote(f"no connection: {error}")
            raise PassingError(why, unreachable=True) from error
        except httpx.TimeoutException as error:
            raise PassingError(f"timeout: no data for {self._timeout_s:g} s") from error
        except httpx.RequestError as error:
            raise PassingError(self._quote(f"connection lost: {error}")) from error

    def _fail(self, response: httpx.Response, endpoint: str) -> None:
        raw = b"".join(_pieces(response, ERROR_BYTES))
        try:
            error = complaint(_parse(raw))
        except ValueError:
            error = complaint(raw.decode(errors="replace"))
        status, host = response.status_code, self.address.shown
        text = self._quote(f"{status}: {error.text or response.reason_phrase}")
        if status in (401, 403):
            advice = "Set another OPENAI_API_KEY" if self._key else "Set OPENAI_API_KEY"
            raise ModelError(f"{host}: authentication failed ({text}). {advice}.")
        if status == 402 or error.code == "insufficient_quota":
            raise ModelError(
                f"{host}: payment required ({text}). Add credit, then run the same command "
                "to resume."
            )
        if response.is_redirect:
            raise ModelError(f"{host}: has moved ({status}). Give its new address as --base-url.")
        if status == 404 and endpoint != "models":
            raise ModelError(
                f"{host}: has no {endpoint}, or not this model ({text}). Check the name after "
                "openai: and --base-url, which usually ends in /v1."
            )
        if status in PASSING or (status >= 500 and status != NOT_IMPLEMENTED):
            raise PassingError(text, after_s=retry_after_s(response.headers.get("Retry-After", "")))
        raise ServerRefusedError(text, error)

    def _check(self, message: Any) -> None:
        """Raise for an error that arrives after the answer has started."""
        if not isinstance(message, dict) or not message.get("error"):
            return
        error = complaint(message)
        text = self._quote(f"the server says: {error.text}")
        if error.code[:1] == "4" and error.code.isdecimal() and int(error.code) not in PASSING:
            raise ServerRefusedError(text, error)
        raise PassingError(text)


def _messages(response: httpx.Response, most: int) -> Iterator[Any]:
    """Yield the chunks of a stream, or the single message of a server that does not stream."""
    if "text/event-stream" not in response.headers.get("Content-Type", ""):
        yield _parse(b"".join(_read_bounded(response, most)))
        return
    # Read to the end, not to the end mark: only then can the connection be used again.
    for data in events(_read_bounded(response, most)):
        if data.strip() != b"[DONE]":
            yield _parse(data)


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _read_bounded(response: httpx.Response, most: int) -> Iterator[bytes]:
    """Yield the body as it arrives. Raise ValueError if it is longer than ``most`` bytes."""
    left = most
    for piece in response.iter_raw():
        left -= len(piece)
        if left < 0:
            raise ValueError(f"more than {most:,} bytes")
        yield piece


def _pieces(response: httpx.Response, most: int) -> Iterator[bytes]:
    """Yield the start of a body: at least ``most`` bytes if it has so many."""
    for piece in response.iter_raw():
        yield piece
        most -= len(piece)
        if most <= 0:
            return


def retry_after_s(header: str, now: datetime | None = None) -> float:
    """Return the seconds in a Retry-After header, a number or a date; 0 if it is not valid."""
    try:
        return max(0.0, float(header)) if float(header) < float("inf") else 0.0
    except ValueError:
        pass
    try:
        until = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return 0.0
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - (now or datetime.now(UTC))).total_seconds())
