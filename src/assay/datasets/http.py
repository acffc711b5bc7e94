"""Fetch a small file from a URL: limited in size and time, verified, renamed at the end."""

from __future__ import annotations

import hashlib
import http.client
import os
import queue
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay import __version__
from assay.datasets.cache import FetchError, refuse_offline, unusable
from assay.work import run_in_background

if TYPE_CHECKING:
    from assay.progress import Announce

TIMEOUT_S = 30.0  # read timeout
ATTEMPT_S = 300.0  # redirects, headers and the whole body
ATTEMPTS = 3
FIRST_PAUSE_S = 1.0
LARGEST_BYTES = 1 << 28  # of a file of unknown size; the largest pinned file has 8 MB
PIECE_BYTES = 1 << 16
TOKEN_GOES_TO = "https://huggingface.co/"
# Statuses worth a retry: too many requests, and problems of the server.
PASSING = {429, 500, 502, 503, 504}


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """The file at ``url``, which should name a version; the digest verifies it.

    Without a digest, the reader verifies its content. A size of 0 means unknown.
    """

    url: str
    sha256: str
    size: int = 0

    @property
    def name(self) -> str:
        return urllib.parse.unquote(urllib.parse.urlsplit(self.url).path).rpartition("/")[2]

    @property
    def host(self) -> str:
        return urllib.parse.urlsplit(self.url).netloc


class _PassingError(Exception):
    """A problem of the network or the server. A retry may succeed."""


def download(wanted: RemoteFile, target: Path, announce: Announce = lambda _: None) -> Path:
    """Fetch to ``target``, which appears complete and verified or not at all."""
    refuse_offline(wanted.name)
    announce(f"downloading {wanted.name} from {wanted.host}")
    content = _fetch(wanted, announce)
    found = hashlib.sha256(content).hexdigest()
    if wanted.sha256 and found != wanted.sha256:
        raise _another_file(wanted, f"sha256 {found[:12]}… instead of {wanted.sha256[:12]}…")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            partial = Path(scratch, target.name)
            partial.write_bytes(content)
            partial.replace(target)
    except OSError as error:
        raise unusable(target.parent, error) from error
    return target


def _fetch(wanted: RemoteFile, announce: Announce) -> bytes:
    """Return the content. Retry while the problem may be temporary."""
    trouble = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            announce(f"{wanted.name}: {trouble}; trying again")
            time.sleep(FIRST_PAUSE_S * 2 ** (attempt - 1))
        try:
            return _fetch_in_time(wanted)
        except _PassingError as error:
            trouble = str(error)
    raise _failure(wanted, trouble, "Check the network, or try again later")


def _fetch_in_time(wanted: RemoteFile) -> bytes:
    """Fetch in a thread that can be abandoned.

    A server that sends its headers byte by byte never reaches the timeout of a single read.
    """
    answers: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()
    deadline = time.monotonic() + ATTEMPT_S

    def ask() -> None:
        try:
            answers.put(_request(wanted, deadline))
        except Exception as error:
            answers.put(error)

    run_in_background(ask)
    try:
        answer = answers.get(timeout=ATTEMPT_S)
    except queue.Empty:
        raise _PassingError("no answer in time") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _request(wanted: RemoteFile, deadline: float) -> bytes:
    headers = {"User-Agent": f"assay/{__version__}", "Accept-Encoding": "identity"}
    request = _authorise(urllib.request.Request(wanted.url, headers=headers))
    try:
        opener = urllib.request.build_opener(_Redirects)
        with opener.open(request, timeout=TIMEOUT_S) as response:
            return _read_body(response, wanted, deadline)
    except urllib.error.HTTPError as error:
        error.close()
        status = f"{error.code} {error.reason}"
        if error.code in PASSING:
            raise _PassingError(status) from None
        closed = error.code in {401, 403} and wanted.url.startswith(TOKEN_GOES_TO)
        remedy = "Set HF_TOKEN to a token that may read it" if closed else "Check the network"
        raise _failure(wanted, status, remedy) from None
    except urllib.error.URLError as error:
        raise _failure(wanted, _reason(error.reason), "Check the network") from None
    except (OSError, http.client.HTTPException) as error:
        raise _PassingError(_reason(error)) from None


def _read_body(response: http.client.HTTPResponse, wanted: RemoteFile, deadline: float) -> bytes:
    most, content = wanted.size or LARGEST_BYTES, bytearray()
    announced = response.length or 0
    # Not read(), which returns only with the whole piece, however slowly it arrives.
    while max(len(content), announced) <= most and (piece := response.read1(PIECE_BYTES)):
        content += piece
        if time.monotonic() > deadline:
            raise TimeoutError
    if max(len(content), announced) > most:
        raise _another_file(wanted, f"more than {most:,} bytes")
    if len(content) < announced:
        raise _PassingError(f"connection lost at {len(content):,} of {announced:,} bytes")
    return bytes(content)


def _another_file(wanted: RemoteFile, problem: str) -> FetchError:
    return FetchError(
        f"{wanted.url}: the file has changed ({problem})", "Check the network, or try again later"
    )


def _authorise(request: urllib.request.Request) -> urllib.request.Request:
    """Add the user's token if the request goes to the hub. Its storage hosts get none."""
    token = os.environ.get("HF_TOKEN")
    if token and request.full_url.startswith(TOKEN_GOES_TO):
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    return request


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Redirects within the web. The token is sent or not, depending on each URL."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        allowed = {"http": ("http", "https")}.get(req.type, ("https",))
        if urllib.parse.urlsplit(newurl).scheme not in allowed:
            fp.close()
            raise urllib.error.URLError(f"{code}: redirects from {req.type} to {newurl[:80]}")
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        return None if request is None else _authorise(request)


def _failure(wanted: RemoteFile, said: str, remedy: str) -> FetchError:
    return FetchError(f"cannot download {wanted.name} from {wanted.host} ({said})", remedy)


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or repr(error)
