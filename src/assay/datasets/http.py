"""Files at an address: progress, resume, checksum, and one rename at the end."""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import os
import queue
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay import __version__
from assay.datasets.cache import FetchError, refuse_offline, unusable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedRandom
    from pathlib import Path

    from assay.progress import Announce

TIMEOUT_S = 30.0
OPEN_S = 60.0  # until the headers are here, redirects included
# A connection that gives less is as good as lost: seconds, and bytes in them.
SLOWEST = (60.0, 60 << 10)
LARGEST_BYTES = 1 << 30  # of a file whose size is not known
ATTEMPTS = 4
FIRST_PAUSE_S = 1.0
PROGRESS_EVERY_S = 2.0
PIECE_BYTES = 1 << 16
TOKEN_GOES_TO = "https://huggingface.co/"
# Too many requests, and what a server says of itself when it is in trouble: worth another try.
PASSING = {429, 500, 502, 503, 504}


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """The file at ``url``, which should name a version; the digest holds it to that.

    Without a digest, who reads it verifies what it holds. A size of 0 is not known.
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


class _ConnectionLostError(Exception):
    """The connection broke; what arrived is kept and the rest can be asked for."""


def download(wanted: RemoteFile, target: Path, announce: Announce = lambda _: None) -> Path:
    """Fetch to ``target``, which appears whole and verified or not at all.

    What arrived before a cut stays in a ``.partial`` file and is continued, in this call or a later
    one. Of several processes one fetches and the others wait for it.
    """
    refuse_offline(wanted.name)
    # Named after the digest: only ever continued with bytes of the same file.
    partial = target.with_name(f"{target.name}.{wanted.sha256[:12]}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(partial, announce) as file:
            if target.exists():  # the process we waited for has fetched it
                partial.unlink()
                return target
            announce(f"fetching {wanted.name} from {wanted.host}")
            try:
                _complete(wanted, file, announce)
            except FetchError:
                if file.seek(0, os.SEEK_END) == 0:
                    partial.unlink()
                raise
            os.fsync(file.fileno())
            partial.replace(target)
    except OSError as error:
        raise unusable(target.parent, error) from error
    return target


@contextmanager
def _locked(path: Path, announce: Announce) -> Iterator[BufferedRandom]:
    """The file, ours alone. Who held it before may have moved or removed it: then a new one."""
    while True:
        with path.open("a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                announce("another process is fetching the file: waiting for it")
                fcntl.flock(file, fcntl.LOCK_EX)
            if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
                yield file
                return


def _complete(wanted: RemoteFile, file: BufferedRandom, announce: Announce) -> None:
    """Ask for what is missing until the file is whole; what is not the wanted file is emptied."""
    trouble = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            announce(f"{wanted.name}: {trouble}; trying again")
            time.sleep(FIRST_PAUSE_S * 2 ** (attempt - 1))
        continued = file.seek(0, os.SEEK_END) > 0
        try:
            _transfer(wanted, file, announce)
        except _ConnectionLostError as error:
            trouble = str(error)
            continue
        file.seek(0)
        found = hashlib.file_digest(file, "sha256").hexdigest()
        if found == wanted.sha256 or not wanted.sha256:
            return
        file.truncate(0)
        trouble = f"sha256 {found[:12]}… instead of {wanted.sha256[:12]}…"
        if not continued:
            raise FetchError(
                f"{wanted.url} is another file now ({trouble})",
                "check the network, or try again later",
            )
    raise _failure(wanted, trouble, "the same command continues it")


def _transfer(wanted: RemoteFile, file: BufferedRandom, announce: Announce) -> None:
    """One request for what is missing; ``_ConnectionLostError`` when less than that comes."""
    have = file.seek(0, os.SEEK_END)
    response = _open(wanted, have)
    if response is None:
        return
    with response:
        if not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            have = file.truncate(0)  # the server starts over
        length = response.length or 0
        total = have + length if length else 0
        told = time.monotonic()
        pace = _Pace(*SLOWEST)
        _refuse_larger(wanted, total, file)
        while piece := _read(response):
            have += len(piece)
            _refuse_larger(wanted, have, file)
            file.write(piece)
            pace.add(len(piece))
            if time.monotonic() - told >= PROGRESS_EVERY_S:
                told = time.monotonic()
                announce(
                    f"{wanted.name}: {_megabytes(have)} of {_megabytes(total) if total else '?'}"
                )
    file.flush()
    if have < total:
        raise _ConnectionLostError(f"connection lost at {_megabytes(have)} of {_megabytes(total)}")


class _Pace:
    """Raises ``_ConnectionLostError`` where fewer than ``least`` bytes come in ``seconds``."""

    def __init__(self, seconds: float, least: int) -> None:
        self._seconds, self._least = seconds, least
        self._since, self._bytes = time.monotonic(), 0

    def add(self, count: int) -> None:
        self._bytes += count
        if time.monotonic() - self._since < self._seconds:
            return
        if self._bytes < self._least:
            raise _ConnectionLostError(f"only {self._bytes} bytes in {self._seconds:g} s")
        self._since, self._bytes = time.monotonic(), 0


def _refuse_larger(wanted: RemoteFile, size: int, file: BufferedRandom) -> None:
    most = wanted.size or LARGEST_BYTES
    if size > most:
        file.truncate(0)
        raise FetchError(
            f"{wanted.url} is another file now (more than {most:,} bytes)",
            "check the network, or try again later",
        )


def _open(wanted: RemoteFile, have: int) -> Any:
    """The response; None when the server says that nothing comes after what we have."""
    headers = {"User-Agent": f"assay/{__version__}", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    request = _authorised(urllib.request.Request(wanted.url, headers=headers))
    try:
        return _answer(request)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            return None
        said = f"{error.code} {error.reason}"
        if error.code in PASSING:
            raise _ConnectionLostError(said) from None
        closed = error.code in {401, 403} and wanted.url.startswith(TOKEN_GOES_TO)
        remedy = "set HF_TOKEN to a token that may read it" if closed else "check the network"
        raise _failure(wanted, said, remedy) from None
    except urllib.error.URLError as error:
        raise _failure(wanted, _reason(error.reason), "check the network") from None
    except (OSError, http.client.HTTPException) as error:
        raise _ConnectionLostError(_reason(error)) from None


def _answer(request: urllib.request.Request) -> Any:
    """Return the response once its headers are here; TimeoutError after ``OPEN_S``.

    In a thread that can be left behind: a server that sends its headers byte by byte never
    reaches the time-out of a single read.
    """
    found: queue.SimpleQueue[Any] = queue.SimpleQueue()
    left = threading.Event()

    def ask() -> None:
        try:
            opener = urllib.request.build_opener(_Redirects)
            response = opener.open(request, timeout=TIMEOUT_S)
            found.put(response)
            if left.is_set():
                response.close()
        except Exception as error:
            found.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = found.get(timeout=OPEN_S)
    except queue.Empty:
        left.set()
        raise TimeoutError from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _read(response: Any) -> bytes:
    try:
        # Not read(), which returns when all of the piece is here, however slowly that comes.
        piece: bytes = response.read1(PIECE_BYTES)
    except (OSError, http.client.HTTPException) as error:
        # Network trouble must not be taken for that of the disk, which is an OSError too.
        raise _ConnectionLostError(_reason(error)) from None
    return piece


def _authorised(request: urllib.request.Request) -> urllib.request.Request:
    """With the user's token, if the request goes to the hub. Storage hosts it names get none."""
    token = os.environ.get("HF_TOKEN")
    if token and request.full_url.startswith(TOKEN_GOES_TO):
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    return request


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows within the web, and decides for each address anew whether the token goes there."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        allowed = {"http": ("http", "https")}.get(req.type, ("https",))
        if urllib.parse.urlsplit(newurl).scheme not in allowed:
            fp.close()
            raise urllib.error.URLError(f"{code}: it redirects from {req.type} to {newurl[:80]}")
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        return None if request is None else _authorised(request)


def _failure(wanted: RemoteFile, said: str, remedy: str) -> FetchError:
    return FetchError(f"cannot fetch {wanted.name} from {wanted.host} ({said})", remedy)


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or repr(error)


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
