"""Join the parts of a server: queue, sandbox, benchmarks, metrics and log."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ipaddress
import platform
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from assay import __version__
from assay.data import codec
from assay.errors import AssayError, UsageError
from assay.sandbox import Capabilities
from assay.serve.backlog import Backlog, FullError, StageSupervisor, Task, Ticket
from assay.serve.catalogue import Catalogue, Served
from assay.serve.client_tests import ClientTests
from assay.serve.options import ServeOptions
from assay.serve.stage import JudgeAnswer
from assay.serve.telemetry import Log, Metrics, resident_bytes
from assay.work.machine import usable_cores

INTERFACE = 1  # version of /judge; raise it when a client of the last one would misread an answer
JSON = "application/json"
LARGE_BODY = 1 << 16  # bytes
LEFT = 499  # of a client that closed its connection, in logs and metrics
PATIENCE = 8  # times the largest body that is read, and not kept, to answer politely
T = TypeVar("T")


class RequestRefusedError(Exception):
    """A request is answered with a status and one line, as FastAPI does."""

    def __init__(
        self, status: int, detail: Any, more: Mapping[str, Any] | None = None, **headers: str
    ) -> None:
        super().__init__(str(detail))
        self.status, self._content = status, {"detail": detail, **(more or {})}
        self._headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def response(self) -> Response:
        """Return the answer."""
        return reply_json(self._content, self.status, self._headers)


def reply_json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return an answer in JSON."""
    return Response(codec.dumps(content).encode(), status, headers, JSON)


@dataclass(frozen=True, slots=True)
class Identity:
    """The facts that verdicts depend on. Answers carry them, so that a client notices changes."""

    assay: str
    kind: str
    tier: str
    python: str
    image: str = ""
    interface: int = INTERFACE


class RequestAnswers:
    """The answers of one request, which come from another thread."""

    def __init__(self, count: int, *, streams: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._arrived: deque[JudgeAnswer] = deque()
        self._changed = asyncio.Event()
        self._failure: RequestRefusedError | None = None
        self._open = count
        self._waking = 1 if streams else count  # answers that are worth waking the loop for

    def put(self, answers: Sequence[JudgeAnswer]) -> None:
        """Add answers. Called from any thread, one at a time."""
        self._arrived.extend(answers)
        if len(self._arrived) >= self._waking:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any longer
                self._loop.call_soon_threadsafe(self._changed.set)

    def fail(self, error: RequestRefusedError) -> None:
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
        sandbox = options.open_sandbox()
        self.capabilities: Capabilities = sandbox.capabilities()
        self.engine = StageSupervisor(
            sandbox, self.workers, options, lambda why: log.error("the sandbox failed", why)
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
        own = self.capabilities
        self.identity = Identity(__version__, own.kind, own.tier, own.python, own.image)
        self.languages: Sequence[str] = ()  # in which programs can be run without tests
        self._add_gauges(self.engine.backlog)

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
        """Return a benchmark, loaded once. Raise RequestRefusedError if that is not possible."""
        served = self.catalogue.served.get(name)
        if served is not None:
            return served
        if name not in self.catalogue.names():
            raise RequestRefusedError(404, f"benchmark {name!r}: is not served here")
        try:
            async with asyncio.timeout(self.options.request_s):
                return await self._once(name, lambda: self.catalogue.load(name))
        except TimeoutError:
            raise RequestRefusedError(503, f"{name}: is still loading", retry_after="10") from None

    async def environment(self, name: str) -> None:
        """Check once that a set of packages works. Raise RequestRefusedError if it does not."""
        if name not in self.catalogue.environments:
            await self._once(f"environment {name}", lambda: self.catalogue.try_environment(name))

    async def read_body(self, request: Request, read: Callable[[bytes], T]) -> tuple[bytes, T]:
        """Return the body of a request, and what a function reads from it.

        Raise RequestRefusedError if it is too large, or too slow. Raise FullError if too many
        bodies arrive at a time.
        """
        options, own = self.options, 0
        most = options.body_mb << 20
        pieces, size = [], 0
        try:
            async with asyncio.timeout(options.body_s):
                async for piece in request.stream():
                    size += len(piece)
                    if size <= most:
                        pieces.append(piece)
                        own += len(piece)
                        self.body_bytes += len(piece)
                        if self.body_bytes > options.queue_mb << 20:
                            raise FullError("too many bytes arrive at a time", 1)
                    elif size > PATIENCE * most:
                        break
        except TimeoutError:
            raise RequestRefusedError(
                408, "body: did not arrive in time", connection="close"
            ) from None
        finally:
            self.body_bytes -= own
        if size > most:
            # All of it was read, if it was not endless: a client that still sends gets no answer.
            raise RequestRefusedError(
                413, f"body: is larger than {options.body_mb} MB", connection="close"
            )
        body = b"".join(pieces)
        return body, await self.read(body, read)

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

    async def _once(self, key: str, work: Callable[[], T]) -> T:
        """Do something slow in a thread. Requests that need the same wait for it together.

        Raise RequestRefusedError if it fails.
        """
        if key not in self._loading:
            task = asyncio.create_task(asyncio.to_thread(work))
            task.add_done_callback(lambda _: self._loading.pop(key, None))
            self._loading[key] = task
        try:
            return await asyncio.shield(self._loading[key])
        except AssayError as error:
            status = 400 if isinstance(error, UsageError) else 503
            raise RequestRefusedError(status, str(error)) from error

    async def answers(
        self, request: Request, tasks: Sequence[Task], size: int, *, streams: bool = False
    ) -> AsyncGenerator[list[JudgeAnswer], None]:
        """Judge programs, and yield answers as they come.

        What still waits is dropped if the client leaves, time is over, or the caller stops.
        Raise FullError or RequestRefusedError.
        """
        if self.draining:
            raise RequestRefusedError(503, "the server is shutting down", retry_after="5")
        inbox = RequestAnswers(len(tasks), streams=streams)
        ticket = Ticket(quota_of(client_of(request)), size, inbox.put, deque(tasks))
        self.engine.submit(ticket)
        watch = asyncio.create_task(_watch(request, inbox))
        # Not asyncio.timeout: the caller may be in the middle of sending when time is over.
        loop = asyncio.get_running_loop()
        late = RequestRefusedError(504, "the request took too long")
        timer = loop.call_later(self.options.request_s, inbox.fail, late)
        missing = len(tasks)
        try:
            async for batch in inbox.batches():
                for one in batch:
                    self.metrics.count("assay_programs_total", status=one.status, reason=one.reason)
                    self.metrics.count("assay_program_cpu_seconds_total", one.cpu_s)
                missing -= len(batch)
                yield batch
        finally:
            timer.cancel()
            watch.cancel()
            if missing:
                self.engine.backlog.cancel(ticket)
                self.metrics.count("assay_cancelled_programs_total", missing)

    async def all_answers(
        self, request: Request, tasks: Sequence[Task], size: int
    ) -> list[JudgeAnswer]:
        """Judge programs and return all answers, in any order."""
        answers: list[JudgeAnswer] = []
        async with contextlib.aclosing(self.answers(request, tasks, size)) as batches:
            async for batch in batches:
                answers += batch
        return answers

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


async def _watch(request: Request, inbox: RequestAnswers) -> None:
    """Wait until the client closes its connection."""
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            inbox.fail(RequestRefusedError(LEFT, ""))
            return
