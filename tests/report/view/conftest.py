"""A real run of the built-in benchmark, served by a real server."""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from assay.pipeline import ScoreConfig, score
from assay.progress import Silent
from assay.report.view import ViewServer
from assay.runs import Result
from assay.types import Benchmark
from tests.conftest import references, write_completions


@dataclass(frozen=True)
class Answer:
    """What a client gets."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Client:
    """Send requests as they are given, with any header."""

    port: int

    def ask(self, path: str, method: str = "GET", host: str = "", **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", host or f"127.0.0.1:{self.port}")
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        response = connection.getresponse()
        answer = Answer(response.status, dict(response.getheaders()), response.read())
        connection.close()
        return answer


@pytest.fixture(scope="session")
def scored(mini: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Judge real programs: one of them is wrong."""
    folder = tmp_path_factory.mktemp("view")
    samples = [*references(mini)[:-1], (mini.problems[-1].task_id, "def f(: </script>")]
    path = write_completions(folder / "answers.jsonl", samples)
    return score(ScoreConfig("mini", folder / "results", samples_file=str(path)), Silent())


@pytest.fixture
def results(scored: Result, tmp_path: Path) -> Path:
    """Copy the results folder, so that a test may change it."""
    return Path(shutil.copytree(scored.path.parent, tmp_path / "results"))


Serve = Callable[..., tuple[ViewServer, Client]]


@pytest.fixture
def serve(results: Path) -> Iterator[Serve]:
    """Return a function that starts a server on a free port."""
    servers: list[ViewServer] = []

    def start(**options: Any) -> tuple[ViewServer, Client]:
        server = ViewServer(results, port=0, **options)
        server.start()
        servers.append(server)
        return server, Client(server.port)

    yield start
    for server in servers:
        server.end()
