"""Send many HTTP requests with little work in the client, for benchmarks of servers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Reply:
    """Hold the answer to one request."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    def json(self) -> Any:
        """Return the content."""
        return json.loads(self.body)


class Connection:
    """Keep one connection to a server on this machine open."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes) -> Reply:
        """Send a request and return the answer. A connection that broke is opened again once."""
        for attempt in (0, 1):
            try:
                writer = await self.send(path, body)
                return await self._read(writer)
            except (ConnectionError, asyncio.IncompleteReadError):
                self.close()
                if attempt:
                    raise
        raise AssertionError

    async def send(self, path: str, body: bytes) -> asyncio.StreamWriter:
        """Send a request, and do not wait for the answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 24)
        _, writer = self._streams
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        return writer

    async def _read(self, _writer: asyncio.StreamWriter) -> Reply:
        assert self._streams is not None
        reader, _ = self._streams
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(": ") for line in head[1:] if line)
        headers = {name.lower(): value for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection") == "close":
            self.close()
        return Reply(int(head[0].split()[1]), body, headers)

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


@contextlib.contextmanager
def running_server(*arguments: str, log: int = subprocess.DEVNULL) -> Iterator[tuple[int, int]]:
    """Run ``assay serve`` in a process of its own. Yield its pid and port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "assay", "serve", "--port", "0", "--quiet", *arguments],
        stdout=subprocess.PIPE, stderr=log, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("assay serve did not start. Run it by hand to see why.")
        port = int(line.split()[2].rpartition(":")[2])
        yield process.pid, port
    finally:
        process.terminate()
        process.wait(90)
        process.stdout.close()


def wait_for(url: str, seconds: float = 120.0) -> None:
    """Wait until a server answers with success."""
    end = time.monotonic() + seconds
    while True:
        with (
            contextlib.suppress(urllib.error.URLError, ConnectionError),
            urllib.request.urlopen(url, timeout=10) as answer,
        ):
            if answer.status == 200:
                return
        if time.monotonic() > end:
            raise TimeoutError(url)
        time.sleep(0.1)


def resident_mb(pid: int) -> float:
    """Return the memory of a process."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
