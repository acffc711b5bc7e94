"""The viewer over HTTP: what it answers, what it refuses, and that nothing changes."""

from __future__ import annotations

import concurrent.futures
import contextlib
import gzip
import socket
import stat
import threading
import time
from pathlib import Path

import pytest

from assay.data.guard import read_token
from assay.errors import UsageError
from assay.report.view import ViewServer
from assay.report.view import server as server_module
from assay.runs import Result
from tests.report.view.conftest import Client, Serve

TOKEN = "a-token-of-some-length"


def test_the_page_lists_the_runs(serve: Serve, scored: Result) -> None:
    _, client = serve()
    answer = client.ask("/")
    assert answer.status == 200
    assert scored.run in answer.body.decode()
    assert 'data-source="api"' in answer.body.decode()


def test_pages_and_data_of_a_run(serve: Serve, scored: Result) -> None:
    _, client = serve()
    section = client.ask(f"/api/section?key=run/{scored.run}").json
    assert section["key"] == f"run/{scored.run}"
    assert "95.0" in section["html"]
    index = client.ask(f"/api/block?name=run/{scored.run}").json
    assert len(index["tasks"]) == 20
    texts = client.ask(f"/api/block?name=run/{scored.run}/texts/0").json
    assert "</script>" in str(texts)
    keys = [link["key"] for link in client.ask("/api/block?name=links").json]
    assert keys[:2] == ["overview", "board"]


def test_every_answer_has_strict_headers(serve: Serve) -> None:
    _, client = serve()
    for path in ("/", "/api/section?key=overview", "/nothing", "/favicon.ico"):
        answer = client.ask(path)
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd", "/etc/passwd", "/run.json", "/api", "/api/", "//evil.example/",
        "/api/section?key=run/..", "/api/section?key=run/%2e%2e%2f%2e%2e%2fetc",
        "/api/section?key=run/..%2f..%2fetc%2fpasswd", "/api/section?key=", "/api/section",
        "/api/section?key=run//etc/passwd", "/api/section?key=compare/../..",
        "/api/block?name=run/../texts/0", "/api/block?name=run/%00", "/api/block?name=run",
        "/api/section?key=model/../../etc/passwd", "/api/block?name=run/x/texts/999999999999",
    ],
)  # fmt: skip
def test_nothing_but_pages_can_be_asked_for(serve: Serve, path: str) -> None:
    _, client = serve()
    answer = client.ask(path)
    assert answer.status == 404
    assert "error" in answer.json
    assert b"root:" not in answer.body


def test_a_linked_folder_is_not_followed(serve: Serve, results: Path, scored: Result) -> None:
    elsewhere = results.parent / "elsewhere"
    (results / scored.run).rename(elsewhere)
    (results / scored.run).symlink_to(elsewhere)
    _, client = serve()
    assert client.ask(f"/api/block?name=run/{scored.run}").json["tasks"] == []


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 505),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 421),
        (b"GET / HTTP/1.0\r\n\r\n", 421),
        (b"<script> / HTTP/1.1\r\nHost: localhost\r\n\r\n", 501),
        (b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ],
    ids=["nonsense", "version", "long", "headers", "two hosts", "no host", "method", "address"],
)
def test_requests_without_sense_get_a_strict_answer(
    serve: Serve, request_bytes: bytes, status: int
) -> None:
    server, client = serve()
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(request_bytes)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        with contextlib.suppress(ConnectionResetError):  # the rest of a long request is not read
            while data := connection.recv(65_536):
                received += data
    head = received.partition(b"\r\n\r\n")[0].decode()
    assert head.startswith(f"HTTP/1.1 {status} ")
    assert "Content-Security-Policy: default-src 'none'" in head
    assert "Content-Type: application/json" in head
    assert client.ask("/").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "X"])
def test_other_methods_are_refused(serve: Serve, method: str) -> None:
    _, client = serve()
    assert client.ask("/", method).status == 501


def test_head_has_no_body(serve: Serve) -> None:
    _, client = serve()
    answer = client.ask("/", "HEAD")
    assert (answer.status, answer.body) == (200, b"")
    assert int(answer.headers["Content-Length"]) > 1000


def test_another_host_or_origin_is_refused(serve: Serve) -> None:
    server, client = serve()
    for path in ("/", "/api/section?key=overview", "/api/events"):
        assert client.ask(path, host="evil.example").status == 421
        assert client.ask(path, Origin="http://evil.example").status == 403
        assert client.ask(path, Sec_Fetch_Site="cross-site").status == 403
    own = f"http://127.0.0.1:{server.port}"
    assert client.ask("/api/section?key=overview", Origin=own).status == 200


def test_large_answers_are_compressed_on_request(serve: Serve) -> None:
    _, client = serve()
    packed = client.ask("/", Accept_Encoding="gzip")
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body).startswith(b"<!DOCTYPE html>")
    assert "Content-Encoding" not in client.ask("/").headers


def test_a_public_address_needs_a_token(results: Path) -> None:
    with pytest.raises(UsageError, match=r"--host 0\.0\.0\.0: others can reach this address"):
        ViewServer(results, host="0.0.0.0", port=0)


def test_the_token_opens_a_session(serve: Serve) -> None:
    server, client = serve(token=TOKEN)
    for path in ("/", "/api/section?key=overview", "/api/events", "/nothing", "/?token=wrong"):
        refused = client.ask(path)
        assert refused.status == 401
        assert refused.headers["WWW-Authenticate"].startswith("Bearer")
    assert server.url.endswith(f"/?token={TOKEN}")
    opened = client.ask(f"/?token={TOKEN}")
    assert (opened.status, opened.headers["Location"]) == (303, "/")
    cookie = opened.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert TOKEN not in cookie
    assert client.ask("/", Cookie=cookie.partition(";")[0]).status == 200
    assert client.ask("/", Authorization=f"Bearer {TOKEN}").status == 200


def test_a_port_in_use_is_one_line(serve: Serve, results: Path) -> None:
    server, _ = serve()
    with pytest.raises(UsageError, match="cannot be used .*Choose another port"):
        ViewServer(results, port=server.port)


def test_a_missing_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        ViewServer(tmp_path / "nothing", port=0)


def test_an_unexpected_error_is_an_answer(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, scored: Result
) -> None:
    server, client = serve()
    lines: list[str] = []
    monkeypatch.setattr(server, "report", lines.append)
    monkeypatch.setattr(server.site, "block", lambda name: 1 / 0)
    answer = client.ask("/api/block?name=links")
    assert (answer.status, answer.json) == (500, {"error": "this page cannot be built"})
    assert lines == ["/api/block?name=links: ZeroDivisionError: division by zero"]
    assert client.ask(f"/api/section?key=run/{scored.run}").status == 200


def test_a_slow_client_does_not_hold_up_others(serve: Serve) -> None:
    server, client = serve()
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    for one in idle[:10]:
        one.sendall(b"GET / HTTP/1.1\r\nHost: ")  # and nothing more
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.ask("/"), range(16)))
    assert [answer.status for answer in answers] == [200] * 16
    assert time.monotonic() - begun < server_module.IDLE_S
    for one in idle:
        one.close()


def test_connections_and_streams_are_limited(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MOST_STREAMS", 1)
    server, client = serve()
    first = open_stream(server.port)
    assert client.ask("/api/events").status == 503
    first.close()
    monkeypatch.setattr(server_module, "MOST_CONNECTIONS", 2)
    limited, _ = serve()
    held = [socket.create_connection(("127.0.0.1", limited.port)) for _ in range(2)]
    time.sleep(0.5)
    with pytest.raises(OSError):  # noqa: PT011 - closed in one of several ways
        Client(limited.port).ask("/")
    for one in held:
        one.close()


def open_stream(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    received = b""
    while b"retry:" not in received:
        received += connection.recv(4096)
    return connection


def test_the_end_of_a_server_ends_its_streams(results: Path) -> None:
    server = ViewServer(results, port=0)
    server.start()
    stream = open_stream(server.port)
    server.end()
    while stream.recv(4096):
        pass
    stream.close()
    with pytest.raises(OSError):  # noqa: PT011
        Client(server.port).ask("/")
    deadline = time.monotonic() + 10
    while any(t.name.startswith("assay-view") for t in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_looking_changes_nothing(serve: Serve, results: Path, scored: Result) -> None:
    before = {path: path.stat().st_mtime_ns for path in sorted(results.rglob("*"))}
    _, client = serve()
    for path in ("/", f"/api/section?key=run/{scored.run}", "/api/section?key=board"):
        assert client.ask(path).status == 200
    assert {path: path.stat().st_mtime_ns for path in sorted(results.rglob("*"))} == before


def test_a_token_file_is_made_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = read_token(path)
    assert len(token) >= 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_token(path) == token


@pytest.mark.parametrize("content", ["short", "", "two words and more letters", "é" * 20])
def test_a_poor_token_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "token"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(UsageError, match="is not a token"):
        read_token(path)


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("a" * 40)
    path.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        read_token(path)
