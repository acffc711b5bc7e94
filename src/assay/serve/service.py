"""Join the parts of a server: queue, sandbox, benchmarks, metrics and log."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ipaddress
import platform
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from starlette.requests import Request

from assay import __version__
from assay.judging import JudgeTask
from assay.sandbox import Capabilities, open_sandbox
from assay.serve.catalogue import Catalogue, ClientTests, Served
from assay.serve.engine.backlog import Backlog, Room, Ticket
from assay.serve.engine.engine import StageSupervisor
from assay.serve.engine.languages import Language, find_languages
from assay.serve.engine.work import JudgeAnswer, JudgeWork
from assay.serve.logs import Log
from assay.serve.metrics import Metrics, resident_bytes
from assay.serve.options import ServeOptions
from assay.work.machine import usable_cores

INTERFACE = 1  # version of /judge; raise it when a client of the last one would misread an answer
Tasks = Sequence[tuple[JudgeTask, JudgeWork]]
LARGE_BODY = 1 << 16  # bytes
T = TypeVar("T")


class ClientLeftError(Exception):
    """Report that the client has closed its connection."""


class TooLateError(Exception):
    """Report that a request took longer than the server allows."""


class DrainingError(Exception):
    """Report that the server is about to end."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Name what verdicts depend on. Every answer carries it, so that a client notices a change."""

    assay: str
    kind: str
    tier: str
    python: str
    image: str = ""
    interface: int = INTERFACE


class Inbox:
    """Receive the answers of one request from another thread."""

    def __init__(self, count: int, *, streams: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._arrived: deque[JudgeAnswer] = deque()
        self._changed = asyncio.Event()
        self._failure: Exception | None = None
        self._open = count
        self._waking = 1 if streams else count  # answers that are worth waking the loop for

    def put(self, answers: Sequence[JudgeAnswer]) -> None:
        """Add answers. Called from any thread, one at a time."""
        self._arrived.extend(answers)
        if len(self._arrived) >= self._waking:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any longer
                self._loop.call_soon_threadsafe(self._changed.set)

    def fail(self, error: Exception) -> None:
        """Note that nobody waits any longer: the client is gone, or time is over."""
        self._failure = error
        self._changed.set()

    async def batches(self) -> AsyncIterator[list[JudgeAnswer]]:
        """Yield answers as they come, until there is one for every program."""
        while self._open:
            await self._changed.wait()
            self._changed.clear()
            if self._failure:
                raise self._failure
            batch = []
            while self._arrived:
                batch.append(self._arrived.popleft())
            if batch:
                self._open -= len(batch)
                yield batch


class Service:
    """Everything that requests share. Create it before the server listens."""

    def __init__(self, options: ServeOptions, log: Log) -> None:
        options.check()
        self.options, self.log = options, log
        self.metrics = Metrics()
        self.workers = options.workers or usable_cores()
        sandbox = open_sandbox(
            options.sandbox, options.workers, options.sandbox_tier, options.python
        )
        self.capabilities: Capabilities = sandbox.capabilities()
        room = Room(options.queue, options.queue_mb << 20, options.client_quota)
        self.engine = StageSupervisor(
            sandbox, self.workers, room, lambda why: log.error("the sandbox failed", why)
        )
        self.catalogue = Catalogue(options)
        self.tests = ClientTests()
        self.draining = False
        self.open_requests = 0
        self.body_bytes = 0  # of requests that still arrive, or wait to be read
        # One thread each for small and large bodies. A small body never waits for a large one, and
        # at most two are unpacked at a time: their values take 20 times their size.
        self._readers = [
            ThreadPoolExecutor(1, f"assay-serve-{size}") for size in ("small", "large")
        ]
        self._loading: dict[str, asyncio.Task[Any]] = {}
        found = self.capabilities
        self.identity = Identity(__version__, found.kind, found.tier, found.python, found.image)
        self._add_gauges(self.engine.backlog)
        self.engine.start()
        self.languages: dict[str, Language] = find_languages(self.engine)

    def _add_gauges(self, backlog: Backlog) -> None:
        gauge = self.metrics.gauge
        gauge("assay_queue_programs", "Programs that wait.", lambda: backlog.waiting)
        gauge("assay_running_programs", "Programs being judged.", lambda: backlog.taken)
        gauge("assay_queue_bytes", "Bytes of open requests.", lambda: backlog.size)
        gauge("assay_open_requests", "Requests being answered.", lambda: self.open_requests)
        gauge("assay_workers", "Workers of the sandbox.", lambda: self.workers)
        gauge("assay_sandbox_restarts", "Stages that failed.", lambda: self.engine.restarts)
        gauge("assay_resident_bytes", "Memory of the server's process.", resident_bytes)

    def about(self) -> dict[str, Any]:
        """Describe the server to clients."""
        options = self.options
        return {
            "service": "assay",
            "judge": asdict(self.identity),
            "sandbox": asdict(self.capabilities),
            "workers": self.workers,
            "node": platform.node(),
            "languages": list(self.languages),
            "limits": asdict(options.limits),
            "batch": options.batch,
            "body_bytes": options.body_mb << 20,
            "client_quota": options.client_quota,
            "benchmarks": self.catalogue.names(),
        }

    @property
    def is_ready(self) -> bool:
        """True while requests are answered."""
        return not self.draining and self.engine.is_alive and self.catalogue.is_ready()

    async def benchmark(self, name: str) -> Served:
        """Return a benchmark, loaded once. Raise UnknownError or AssayError."""
        found = self.catalogue.find(name)
        return found if found else await self._once(name, lambda: self.catalogue.load(name))

    async def read(self, body: bytes, read: Callable[[bytes], T]) -> T:
        """Return what a function reads from a body, off the event loop.

        The loop must answer others meanwhile: to parse 30 MB of cases takes seconds.
        """
        reader = self._readers[len(body) >= LARGE_BODY]
        self.body_bytes += len(body)
        try:
            return await asyncio.get_running_loop().run_in_executor(reader, read, body)
        finally:
            self.body_bytes -= len(body)

    async def environment(self, name: str) -> None:
        """Check once that a set of packages works. Raise AssayError."""
        if not self.catalogue.has_environment(name):
            await self._once(f"environment {name}", lambda: self.catalogue.try_environment(name))

    async def _once(self, key: str, work: Callable[[], Any]) -> Any:
        """Do something slow in a thread. Requests that need the same wait for it together."""
        if key not in self._loading:
            task = asyncio.create_task(asyncio.to_thread(work))
            task.add_done_callback(lambda _: self._loading.pop(key, None))
            self._loading[key] = task
        return await asyncio.shield(self._loading[key])

    async def answers(
        self, request: Request, tasks: Tasks, size: int, *, streams: bool = False
    ) -> AsyncGenerator[list[JudgeAnswer], None]:
        """Judge programs, and yield answers as they come.

        What still waits is dropped if the client leaves, time is over, or the caller stops.
        Raise FullError, DrainingError, ClientLeftError or TooLateError.
        """
        if self.draining:
            raise DrainingError
        inbox = Inbox(len(tasks), streams=streams)
        ticket = Ticket(quota_of(client_of(request)), size, inbox.put, deque(tasks))
        self.engine.submit(ticket)
        watch = asyncio.create_task(_watch(request, inbox))
        # Not asyncio.timeout: the caller may be in the middle of sending when time is over.
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self.options.request_s, inbox.fail, TooLateError())
        missing = len(tasks)
        try:
            async for batch in inbox.batches():
                self._count(batch)
                missing -= len(batch)
                yield batch
        finally:
            timer.cancel()
            watch.cancel()
            if missing:
                self.engine.backlog.cancel(ticket)
                self.metrics.count("assay_cancelled_programs_total", missing)

    async def all_answers(self, request: Request, tasks: Tasks, size: int) -> list[JudgeAnswer]:
        """Judge programs and return all answers, in any order."""
        found: list[JudgeAnswer] = []
        async with contextlib.aclosing(self.answers(request, tasks, size)) as batches:
            async for batch in batches:
                found += batch
        return found

    def _count(self, batch: Sequence[JudgeAnswer]) -> None:
        for one in batch:
            self.metrics.count("assay_programs_total", status=one.status, reason=one.reason)
            self.metrics.count("assay_program_cpu_seconds_total", one.cpu_s)

    async def drain(self) -> None:
        """Refuse new requests, and wait for the open ones as long as the options allow."""
        self.draining = True
        self.log.write("draining", open_requests=self.open_requests)
        end = time.monotonic() + self.options.drain_s
        while self.open_requests and time.monotonic() < end:
            await asyncio.sleep(0.05)

    def close(self) -> None:
        """End the sandbox and everything that runs in it."""
        self.engine.close()
        for reader in self._readers:
            reader.shutdown(wait=False, cancel_futures=True)


def client_of(request: Request) -> str:
    """Return the address of a client."""
    return request.client.host if request.client else "unknown"


@functools.lru_cache(maxsize=4096)
def quota_of(client: str) -> str:
    """Return what the quota of a client is counted by.

    A machine has many addresses of its own, and usually a whole network of IPv6 addresses.
    """
    try:
        address = ipaddress.ip_address(client.partition("%")[0])
    except ValueError:
        return client
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_loopback:
        return "loopback"
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


async def _watch(request: Request, inbox: Inbox) -> None:
    """Wait until the client closes its connection."""
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            inbox.fail(ClientLeftError())
            return
