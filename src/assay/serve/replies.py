"""Turn bodies, errors and answers into HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from assay.serve.engine.backlog import FullError

if TYPE_CHECKING:
    from assay.serve.service import Service

JSON = "application/json"
NDJSON = "application/x-ndjson"
LEFT = 499  # of a client that closed its connection, in logs and metrics
PATIENCE = 8  # times the largest body that is read, and not kept, to answer politely
_encode = json.JSONEncoder(separators=(",", ":")).encode


class RequestRefusedError(Exception):
    """A request is answered with a status and one line, as FastAPI does."""

    def __init__(self, status: int, detail: Any, **headers: str) -> None:
        super().__init__(str(detail))
        self.status, self.detail, self.headers = status, detail, headers

    def response(self) -> Response:
        """Return the answer."""
        headers = {name.replace("_", "-"): value for name, value in self.headers.items()}
        return reply_json({"detail": self.detail}, self.status, headers)


def reply_json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return an answer in JSON."""
    return Response(_encode(content).encode(), status, headers, JSON)


class LineStream(StreamingResponse):  # type: ignore[misc]
    """Send lines as they are made, and close their generator before the request is recorded."""

    body_iterator: AsyncGenerator[bytes, None]

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send all lines. They end if the client leaves."""
        async with contextlib.aclosing(self.body_iterator):
            await self.stream_response(send)


async def read_body(request: Request, service: Service) -> bytes:
    """Return the body of a request. Raise RequestRefusedError if it is too large, or too slow.

    Raise FullError if too many bodies arrive at a time.
    """
    options, kept = service.options, 0
    most = options.body_mb << 20
    pieces, size = [], 0
    try:
        async with asyncio.timeout(options.body_s):
            async for piece in request.stream():
                size += len(piece)
                if size <= most:
                    pieces.append(piece)
                    kept += len(piece)
                    service.body_bytes += len(piece)
                    if service.body_bytes > options.queue_mb << 20:
                        raise FullError("too many bytes arrive at a time", 1)
                elif size > PATIENCE * most:
                    break
    except TimeoutError:
        raise RequestRefusedError(408, "body: did not arrive in time", connection="close") from None
    finally:
        service.body_bytes -= kept
    if size > most:
        # All of it was read, if it was not endless: a client that still sends gets no answer.
        raise RequestRefusedError(
            413, f"body: is larger than {options.body_mb} MB", connection="close"
        )
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
