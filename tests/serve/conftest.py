"""A judge service in this process, and calls of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from assay.serve.options import ServeOptions
from assay.serve.server import JudgeServer
from tests.skips import SHARED_DATA

TOKEN = "a-token-of-more-than-sixteen-characters"
READ_S = 120.0


def make_options(**changes: Any) -> ServeOptions:
    """Return options of a small server at any free port."""
    defaults: dict[str, Any] = {"port": 0, "workers": 1, "log_requests": False}
    if SHARED_DATA.is_dir():
        defaults["data_dir"] = SHARED_DATA
    return ServeOptions(**{**defaults, **changes})


@contextlib.contextmanager
def serving(**changes: Any) -> Iterator[JudgeServer]:
    """Run a server in a thread."""
    server = JudgeServer(make_options(**changes))
    server.start()
    try:
        wait_until(lambda: is_answered(server.url))
        yield server
    finally:
        server.end()


def is_answered(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return bool(httpx.get(f"{url}/health").status_code == 200)
    return False


def wait_until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for something to become true. Fail if it does not."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.fixture(scope="session")
def server(_environment: None) -> Iterator[JudgeServer]:
    with serving() as opened:
        yield opened


@pytest.fixture(scope="session")
def client(server: JudgeServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=READ_S) as opened:
        yield opened


class Process:
    """The real command, in a process of its own."""

    def __init__(self, *arguments: str, **variables: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "assay", "serve", "--port", "0", "--workers", "1", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
            start_new_session=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert "http://" in line, self._process.stderr and self._process.stderr.read()
        self.url = line.split()[2]

    @property
    def pid(self) -> int:
        return self._process.pid

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal. Return the exit code and the log."""
        self._process.send_signal(number)
        _, log = self._process.communicate(timeout=60)
        return self._process.returncode, log


@pytest.fixture
def start() -> Iterator[Callable[..., Process]]:
    """Start real servers, and end them after the test."""
    processes: list[Process] = []

    def run(*arguments: str, **variables: str) -> Process:
        processes.append(Process(*arguments, **variables))
        return processes[-1]

    yield run
    for one in processes:
        if one._process.poll() is None:
            one.end(signal.SIGKILL)
        for stream in (one._process.stdout, one._process.stderr):
            if stream:
                stream.close()


def token_file(folder: Path) -> Path:
    """Write a token into a file that only its owner reads."""
    path = folder / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    return path


def judge(client: httpx.Client, programs: list[dict[str, Any]], **common: Any) -> Any:
    """Return the verdicts of a request that must succeed."""
    response = client.post("/judge", json={"programs": programs, **common})
    assert response.status_code == 200, response.text
    return response.json()["verdicts"]
