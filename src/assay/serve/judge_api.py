"""Answer ``/judge``, and what clients ask about the server."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from assay.errors import AssayError
from assay.sandbox.remote.client import JUDGE_HEADER
from assay.serve.catalogue import Served, UnknownError, describe_failure
from assay.serve.engine.work import JudgeAnswer
from assay.serve.judge_request import (
    BadRequestError,
    JudgeRequest,
    Reading,
    TooManyValuesError,
    UnknownTestsError,
    read_request,
)
from assay.serve.replies import (
    JSON,
    LEFT,
    NDJSON,
    LineStream,
    RequestRefusedError,
    read_body,
    reply_json,
)
from assay.serve.service import ClientLeftError, Service, Tasks, TooLateError

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class JudgeApi:
    """The routes of assay itself."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._identity = json.dumps(asdict(service.identity)).encode()

    async def judge(self, request: Request) -> Response:
        """Judge a batch of programs or completions."""
        service = self._service
        body = await read_body(request, service)
        try:
            wanted = await service.read(body, lambda body: read_request(body, service.options))
            tasks = await self._read(wanted, body)
        except UnknownTestsError as error:
            return reply_json({"detail": str(error), "unknown_tests": error.names}, 409)
        except TooManyValuesError as error:
            raise RequestRefusedError(413, str(error)) from error
        except BadRequestError as error:
            raise RequestRefusedError(400, str(error)) from error
        request.state.programs = len(tasks)
        if wanted.streams or NDJSON in request.headers.get("accept", ""):
            return await self._stream(request, tasks, len(body))
        answers = await service.all_answers(request, tasks, len(body))
        return Response(self._join(tasks, answers), 200, media_type=JSON)

    async def _read(self, wanted: JudgeRequest, body: bytes) -> Tasks:
        """Look up what programs are judged by. Benchmarks are loaded on their first use."""
        service = self._service
        served = {}
        for name in wanted.benchmarks():
            served[name] = await find_benchmark(service, name)
        for name in wanted.environments() - {""}:
            try:
                await service.environment(name)
            except AssayError as error:
                raise RequestRefusedError(*describe_failure(error)) from error
        reading = Reading(
            wanted,
            service.options,
            served,
            service.tests,
            service.catalogue.trusted,
            service.engine.backlog.next_number,
        )
        return await service.read(body, lambda _: reading.read())

    def _join(self, tasks: Tasks, answers: list[JudgeAnswer]) -> bytes:
        lines = {one.number: one.line for one in answers}
        ordered = b",".join(lines[work.number] for _, work in tasks)
        return b'{"verdicts":[' + ordered + b'],"judge":' + self._identity + b"}"

    async def _stream(self, request: Request, tasks: Tasks, size: int) -> Response:
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
            except ClientLeftError:
                request.state.status = LEFT
                return
            except TooLateError:
                request.state.status = 504
                yield b'{"error":"the request took too long"}\n'
                return
            end = b'{"end":true,"count":%d,"judge":%b}\n'
            yield end % (count, self._identity)

    async def about(self, _request: Request) -> Response:
        """Describe the server."""
        return reply_json(self._service.about())

    async def benchmark(self, request: Request) -> Response:
        """Describe a benchmark that is served."""
        served = await find_benchmark(self._service, request.path_params["name"])
        found = served.benchmark
        return reply_json(
            {
                "name": found.name,
                "version": found.version,
                "data_sha256": found.data_sha256,
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


async def find_benchmark(service: Service, name: str) -> Served:
    """Return a benchmark. Raise RequestRefusedError if it is not served, or cannot be loaded."""
    try:
        async with asyncio.timeout(service.options.request_s):
            return await service.benchmark(name)
    except UnknownError as error:
        raise RequestRefusedError(404, str(error)) from error
    except AssayError as error:
        raise RequestRefusedError(*describe_failure(error)) from error
    except TimeoutError:
        raise RequestRefusedError(503, f"{name}: is still loading", retry_after="10") from None
