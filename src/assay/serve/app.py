"""Route requests, decide which are answered, and answer those of assay's own API."""

from __future__ import annotations

import base64
import binascii
import contextlib
import importlib.util
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import asdict

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from assay.data import codec
from assay.data.guard import Guard, collect_headers, make_guard
from assay.judging.client import JUDGE_HEADER, NDJSON
from assay.serve.backlog import FullError, Task
from assay.serve.judge_request import JudgeRequest
from assay.serve.service import JSON, LEFT, RequestRefusedError, Service, client_of, reply_json
from assay.serve.stage import JudgeAnswer

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
OPEN = ("/health", "/ready", "/v1/ping")  # without a token: they say nothing about requests
NEEDED = {b"host", b"origin", b"authorization", b"sec-fetch-site", b"sec-fetch-mode"}
Handler = Callable[[Request], Awaitable[Response]]
HandledRoute = tuple[str, str, Handler]  # method, path


def make_app(service: Service) -> ASGIApp:
    """Return the application."""
    judge = JudgeApi(service)
    routes: list[HandledRoute] = [
        ("POST", "/judge", judge.judge),
        ("GET", "/about", judge.about),
        ("GET", "/benchmarks/{name}", judge.benchmark),
        ("GET", "/health", judge.health),
        ("GET", "/ready", judge.ready),
        ("GET", "/metrics", judge.metrics),
        *_fusion_routes(service),
    ]
    app = Starlette(
        routes=[
            Route(path, _Endpoint(service, path, handler), methods=[method])
            for method, path, handler in routes
        ]
    )
    return Doorkeeper(app, service)


def _fusion_routes(service: Service) -> list[HandledRoute]:
    """Return the routes of SandboxFusion's API, or none if its folder was deleted."""
    if importlib.util.find_spec("assay.serve.fusion") is None:
        return []
    from assay.serve.fusion.api import FusionApi

    return FusionApi(service).routes()


class Doorkeeper:
    """An application that refuses requests of other sites, and those without the token.

    With a token, the name of the server does not matter.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service
        options = service.options
        if options.token:
            self._guard = Guard(only_loopback=False, any_name=True, token=options.token)
        else:
            self._guard = make_guard(options.host, options.port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http" and (refusal := self._refuse(scope)):
            service, status = self._service, str(refusal.status)
            service.metrics.count("assay_requests_total", route="refused", status=status)
            if service.log.requests:
                client = client_of(Request(scope))
                service.log.write("refused", status=refusal.status, client=client)
            await refusal.response()(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refuse(self, scope: Scope) -> RequestRefusedError | None:
        headers = collect_headers(
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in scope["headers"]
            if name in NEEDED
        )
        if refusal := self._guard.check(headers):
            return RequestRefusedError(refusal.status, refusal.reason)
        if scope["path"] in OPEN or self._guard.admits(headers, basic_password(headers)):
            return None
        return RequestRefusedError(401, "a token is required", www_authenticate="Bearer")


def basic_password(headers: dict[str, str]) -> str:
    """Return the password of basic authentication, for clients that know only addresses."""
    scheme, _, credentials = headers.get("Authorization", "").partition(" ")
    if scheme != "Basic":
        return ""
    try:
        decoded = base64.b64decode(credentials, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return decoded.partition(":")[2]


class _Endpoint:
    """A handler whose errors become answers, and whose requests are recorded."""

    def __init__(self, service: Service, route: str, handler: Handler) -> None:
        self._service, self._route, self._handler = service, route, handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        service, started = self._service, time.monotonic()
        request = Request(scope, receive, send)
        service.open_requests += 1
        status = 500
        try:
            response = await self._answer(request)
            status = response.status_code
            if service.draining:
                response.headers["connection"] = "close"
            if status != LEFT:
                await response(scope, receive, send)
        finally:
            service.open_requests -= 1
            status = getattr(request.state, "status", status)  # of a stream that was cut off
            self._record(request, status, time.monotonic() - started)

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._handler(request)
        except RequestRefusedError as error:
            return error.response()
        except FullError as error:
            self._service.metrics.count("assay_rejected_total", why=str(error))
            retry_after = str(error.retry_after_s)
            return RequestRefusedError(429, str(error), retry_after=retry_after).response()
        except ClientDisconnect:
            return Response(status_code=LEFT)
        except Exception as error:
            self._service.log.error("a request failed", f"{type(error).__name__}: {error}")
            why = "an internal error; the server's log has the details"
            return RequestRefusedError(500, why).response()

    def _record(self, request: Request, status: int, seconds: float) -> None:
        service = self._service
        service.metrics.count("assay_requests_total", route=self._route, status=str(status))
        service.metrics.observe(self._route, seconds)
        if service.log.requests and self._route not in OPEN:
            service.log.write(
                "request", route=self._route, status=status, ms=round(seconds * 1000, 1),
                client=client_of(request), programs=getattr(request.state, "programs", 0),
            )  # fmt: skip


class LineStream(StreamingResponse):  # type: ignore[misc]
    """Lines that are sent as they are made. Their generator ends before the request is recorded."""

    body_iterator: AsyncGenerator[bytes, None]

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send all lines. They end if the client leaves."""
        async with contextlib.aclosing(self.body_iterator):
            await self.stream_response(send)


class JudgeApi:
    """The routes of assay itself."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._identity = json.dumps(asdict(service.identity)).encode()

    async def judge(self, request: Request) -> Response:
        """Judge a batch of programs or completions. Benchmarks are loaded on their first use."""
        service = self._service
        body, wanted = await service.read_body(request, lambda body: JudgeRequest(body, service))
        served = {name: await service.benchmark(name) for name in wanted.benchmarks()}
        for name in wanted.environments():
            await service.environment(name)
        tasks = await service.read(body, lambda _: wanted.read(served))
        request.state.programs = len(tasks)
        if wanted.streams or NDJSON in request.headers.get("accept", ""):
            return await self._stream(request, tasks, len(body))
        answers = await service.all_answers(request, tasks, len(body))
        lines = {one.number: one.line for one in answers}
        ordered = b",".join(lines[work.number] for _, work in tasks)
        content = b'{"verdicts":[' + ordered + b'],"judge":' + self._identity + b"}"
        return Response(content, 200, media_type=JSON)

    async def _stream(self, request: Request, tasks: Sequence[Task], size: int) -> Response:
        """Answer with a line per verdict as it comes, and a last line that says all are there."""
        batches = self._service.answers(request, tasks, size, streams=True)
        first = await anext(batches)  # a refusal still has its own status
        lines = self._lines(request, batches, first, len(tasks))
        return LineStream(lines, 200, {JUDGE_HEADER: self._identity.decode()}, NDJSON)

    async def _lines(
        self,
        request: Request,
        batches: AsyncGenerator[list[JudgeAnswer], None],
        batch: list[JudgeAnswer],
        count: int,
    ) -> AsyncGenerator[bytes, None]:
        async with contextlib.aclosing(batches):
            try:
                yield b"".join(one.line + b"\n" for one in batch)
                async for batch in batches:
                    yield b"".join(one.line + b"\n" for one in batch)
            except RequestRefusedError as error:  # the client has left, or time is over
                request.state.status = error.status
                if error.status != LEFT:
                    yield codec.dumps({"error": str(error)}).encode() + b"\n"
                return
            end = b'{"end":true,"count":%d,"judge":%b}\n'
            yield end % (count, self._identity)

    async def about(self, _request: Request) -> Response:
        """Describe the server."""
        return reply_json(self._service.about())

    async def benchmark(self, request: Request) -> Response:
        """Describe a benchmark that is served."""
        served = await self._service.benchmark(request.path_params["name"])
        benchmark = served.benchmark
        return reply_json(
            {
                "name": benchmark.name,
                "version": benchmark.version,
                "data_sha256": benchmark.data_sha256,
                "tasks": list(served.subjects),
                "unscorable": served.unscorable,
                "judge": asdict(self._service.identity),
            }
        )

    async def health(self, _request: Request) -> Response:
        """Say whether the process works at all."""
        alive = self._service.engine.is_alive or self._service.draining
        return reply_json({"status": "ok" if alive else "failed"}, 200 if alive else 503)

    async def ready(self, _request: Request) -> Response:
        """Say whether requests are answered."""
        ready = self._service.is_ready
        return reply_json({"ready": ready}, 200 if ready else 503)

    async def metrics(self, _request: Request) -> Response:
        """Return counts for Prometheus."""
        return PlainTextResponse(self._service.metrics.render(), media_type=PROMETHEUS)
