"""Answer ``/judge``, and what clients ask about the server."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from assay.data import codec
from assay.judging.client import JUDGE_HEADER, NDJSON
from assay.serve.backlog import Task
from assay.serve.judge_request import JudgeRequest
from assay.serve.service import JSON, LEFT, RequestRefusedError, Service, reply_json
from assay.serve.stage import JudgeAnswer

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


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
