"""Turn bodies, errors and answers into HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from assay.serve.options import ServeOptions

JSON = "application/json"
NDJSON = "application/x-ndjson"
PATIENCE = 8  # times the largest body that is read, and not kept, to answer politely
_encode = json.JSONEncoder(separators=(",", ":")).encode


class RefusedError(Exception):
    """Report a request that is answered with a status and one line, as FastAPI does."""

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


async def read_body(request: Request, options: ServeOptions) -> bytes:
    """Return the body of a request. Raise RefusedError if it is too large, or too slow."""
    most = options.body_mb << 20
    pieces, size = [], 0
    try:
        async with asyncio.timeout(options.body_s):
            async for piece in request.stream():
                size += len(piece)
                if size <= most:
                    pieces.append(piece)
                elif size > PATIENCE * most:
                    break
    except TimeoutError:
        raise RefusedError(408, "body: did not arrive in time", connection="close") from None
    if size > most:
        # All of it was read, if it was not endless: a client that still sends gets no answer.
        raise RefusedError(413, f"body: is larger than {options.body_mb} MB", connection="close")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
