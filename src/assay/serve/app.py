"""Route requests, and decide which are answered."""

from __future__ import annotations

import base64
import binascii
import importlib.util
import time
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from assay.data.guard import LOCAL_NAMES, Guard, is_loopback, make_guard
from assay.serve.engine.backlog import FullError
from assay.serve.judge_api import JudgeApi
from assay.serve.options import ServeOptions
from assay.serve.replies import LEFT, RequestRefusedError
from assay.serve.service import (
    ClientLeftError,
    DrainingError,
    Service,
    TooLateError,
    client_of,
)

OPEN = ("/health", "/ready", "/v1/ping")  # without a token: they say nothing about requests
BASIC = "Basic "
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


def guard_of(options: ServeOptions) -> Guard:
    """Return who is answered. With a token, the name of the server does not matter."""
    if options.token:
        return Guard(LOCAL_NAMES, only_loopback=False, any_name=True, token=options.token)
    assert is_loopback(options.host)
    return make_guard(options.host, options.port)


class Doorkeeper:
    """Refuse requests of other sites, and those without the token."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service
        self._guard = guard_of(service.options)

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
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            if name in NEEDED:  # one that is repeated is joined, so it is never valid
                key = name.decode("latin-1").title()
                text = value.decode("latin-1")
                headers[key] = f"{headers[key]}, {text}" if key in headers else text
        if found := self._guard.check(headers):
            return RequestRefusedError(found.status, found.reason)
        if scope["path"] in OPEN or self._guard.admits(headers, basic_password(headers)):
            return None
        return RequestRefusedError(401, "a token is required", www_authenticate="Bearer")


def basic_password(headers: dict[str, str]) -> str:
    """Return the password of basic authentication, for clients that know only addresses."""
    given = headers.get("Authorization", "")
    if not given.startswith(BASIC):
        return ""
    try:
        decoded = base64.b64decode(given.removeprefix(BASIC), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return decoded.partition(":")[2]


class _Endpoint:
    """Call a handler, turn errors into answers, and record each request."""

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
            return RequestRefusedError(
                429, str(error), retry_after=str(error.retry_after_s)
            ).response()
        except DrainingError:
            return RequestRefusedError(
                503, "the server is shutting down", retry_after="5"
            ).response()
        except TooLateError:
            return RequestRefusedError(504, "the request took too long").response()
        except (ClientLeftError, ClientDisconnect):
            return Response(status_code=LEFT)
        except Exception as error:
            self._service.log.error("a request failed", f"{type(error).__name__}: {error}")
            return RequestRefusedError(
                500, "an internal error; the server's log has the details"
            ).response()

    def _record(self, request: Request, status: int, seconds: float) -> None:
        service = self._service
        service.metrics.count("assay_requests_total", route=self._route, status=str(status))
        service.metrics.observe(self._route, seconds)
        if service.log.requests and self._route not in OPEN:
            service.log.write(
                "request", route=self._route, status=status, ms=round(seconds * 1000, 1),
                client=client_of(request), programs=getattr(request.state, "programs", 0),
            )  # fmt: skip
