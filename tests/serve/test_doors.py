"""Who is answered, and what a program can see of the server."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from assay.serve.app import basic_password
from assay.serve.server import JudgeServer
from assay.serve.service import quota_of
from tests.serve.conftest import TOKEN, Process, judge, serving, token_file
from tests.serve.test_judge import CODE, RIGHT

BODY = {"programs": [{"program": RIGHT, "tests": CODE}]}


@pytest.fixture(scope="module")
def guarded() -> Iterator[JudgeServer]:
    with serving(token=TOKEN, host="127.0.0.1") as server:
        yield server


@pytest.mark.parametrize("path", ["/judge", "/run_code", "/submit", "/get_prompts"])
def test_nothing_is_answered_without_the_token(guarded: JudgeServer, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Bearer {TOKEN}x"}):
        response = httpx.post(guarded.url + path, json=BODY, headers=headers)
        assert response.status_code == 401
        assert TOKEN not in response.text
    for open_path in ("/about", "/metrics", "/benchmarks/mini", "/list_datasets"):
        assert httpx.get(guarded.url + open_path).status_code == 401
    for open_path in ("/health", "/ready", "/v1/ping"):
        assert httpx.get(guarded.url + open_path).status_code == 200
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    counts = httpx.get(f"{guarded.url}/metrics", headers=bearer).text
    assert 'assay_requests_total{route="refused",status="401"}' in counts


def test_the_token_opens_as_a_bearer_and_as_a_password(guarded: JudgeServer) -> None:
    bearer = {"Authorization": f"Bearer {TOKEN}", "Host": "judge.cluster.local:8080"}
    assert httpx.post(f"{guarded.url}/judge", json=BODY, headers=bearer).status_code == 200
    # The clients of verl and SandboxFusion know an address and nothing else.
    address = guarded.url.replace("http://", f"http://any:{TOKEN}@")
    run = {"code": "print(1)", "language": "python"}
    assert httpx.post(f"{address}/run_code", json=run).status_code == 200


def test_connections_without_a_request_are_closed(
    guarded: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.serve.server.HEAD_S", 0.1)
    whole = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    for first, then in ((b"", b""), (b"", whole[:20]), (whole, whole[:20])):
        with socket.create_connection(("127.0.0.1", guarded.port), timeout=60) as raw:
            if first:
                raw.sendall(first)
                answer = b""
                while not answer.endswith(b'{"status":"ok"}'):
                    answer += (part := raw.recv(1 << 16))
                    assert part, answer
            raw.sendall(then)
            assert raw.recv(1) == b""


def test_connections_are_bounded(guarded: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded._server.config, "limit_concurrency", 2)
    with contextlib.ExitStack() as stack:
        opened = [
            stack.enter_context(socket.create_connection(("127.0.0.1", guarded.port), timeout=60))
            for _ in range(3)
        ]
        assert opened[-1].recv(1) == b""


@pytest.mark.parametrize(
    ("addresses", "count"),
    [
        (("127.0.0.1", "127.0.0.9", "::1", "::ffff:127.0.0.1"), 1),
        (("2001:db8::1", "2001:db8::2:1", "2001:db8:0:1::1"), 2),
        (("192.0.2.1", "192.0.2.2", "unknown"), 3),
    ],
)
def test_one_machine_has_one_quota(addresses: tuple[str, ...], count: int) -> None:
    assert len(set(map(quota_of, addresses))) == count


def test_malformed_passwords_are_none() -> None:
    for given in ("Basic", "Basic ???", "Basic /w==", "Bearer x", ""):
        assert basic_password({"Authorization": given}) == ""


def test_pages_of_other_sites_are_not_answered(server: JudgeServer) -> None:
    other = "http://evil.example"
    for headers in ({"Host": "evil.example"}, {"Origin": other}, {"Sec-Fetch-Site": "cross-site"}):
        response = httpx.post(f"{server.url}/judge", json=BODY, headers=headers)
        assert response.status_code in (403, 421), headers


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_another_address_needs_a_token(host: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "assay", "serve", "--host", host, "--port", "0"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"--host {host}: others can reach this address. Give --token-file" in line


def test_a_port_in_use_is_one_line(server: JudgeServer) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "assay", "serve", "--port", str(server.port)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "cannot be used (Address already in use)" in done.stderr


PEEK = """
import glob, os
seen = dict(os.environ)
for path in [{token!r}, "/proc/self/environ", "/proc/1/environ", *glob.glob("/proc/*/environ"),
             *glob.glob("/proc/*/cmdline"), *glob.glob("/proc/*/fd/*")]:
    try:
        seen[path] = open(path, "rb").read(1 << 16)
    except OSError as error:
        seen[path] = type(error).__name__
print(seen)
"""


def test_a_program_sees_neither_token_nor_environment_nor_other_requests(
    start: Callable[..., Process], tmp_path: Path
) -> None:
    path = token_file(tmp_path)
    process = start("--token-file", str(path), ASSAY_TEST_SECRET="of-the-server")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=process.url, headers=headers, timeout=60) as client:
        marked = RIGHT + "# of another request\n"
        assert judge(client, [{"program": marked, "tests": CODE}])[0]["status"] == "pass"
        code = PEEK.format(token=str(path))
        body = {"code": code, "language": "python", "run_timeout": 10}
        seen = client.post("/run_code", json=body).json()["run_result"]["stdout"]
    assert str(path) in seen
    for secret in (TOKEN, "of-the-server", "of another request", "token-file"):
        assert secret not in seen
    assert os.environ.get("HOME", "/root") not in seen.replace(str(path), "")
    _, log = process.end()
    assert TOKEN not in log


def test_logs_are_lines_of_json_even_if_clients_send_line_ends(
    start: Callable[..., Process],
) -> None:
    import json

    process = start()
    httpx.post(f"{process.url}/judge", json={"programs": [{"program": "", "x\n{": 1}]})
    httpx.get(f"{process.url}/benchmarks/a%0ab")
    _, log = process.end()
    lines = [json.loads(line) for line in log.splitlines()]
    assert {"listening", "request", "draining", "ended"} <= {line["event"] for line in lines}
    assert [line["status"] for line in lines if line["event"] == "request"] == [400, 404]
