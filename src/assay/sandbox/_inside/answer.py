"""The program's side of separated tests: it is called with plain data and answers with plain data.

Nothing here is trusted by the other side. A program may answer in its own way, which gains it
nothing: it does not know what is expected.
"""

from __future__ import annotations

import time
from typing import Any, NoReturn

from . import judge, wire
from .plain import decode, encode

FLUSH_S = 0.002  # many short calls share a message


def serve(namespace: dict[str, object], program: str, entry_point: str, channel: int) -> NoReturn:
    """Load the program, then answer until the other side has heard enough."""
    unloaded = _load(namespace, program)
    while True:
        answers: list[Any] = []
        sent = time.monotonic()
        for arguments in wire.receive(channel):
            answers.append(unloaded or _called(namespace, entry_point, arguments))
            if time.monotonic() - sent > FLUSH_S:
                wire.send(channel, answers)
                answers, sent = [], time.monotonic()
        wire.send(channel, answers)


def _load(namespace: dict[str, object], program: str) -> dict[str, str] | None:
    """What went wrong, if it did."""
    try:
        code = judge.compiled(program, judge.PROGRAM)
    except judge.NOT_PYTHON as error:
        return {"raised": "", "reason": "syntax", "detail": judge.describe(error)}
    try:
        exec(code, namespace)
    except BaseException as error:
        return {**_failure(error), "raised": ""}  # not by a call
    return None


def _called(namespace: dict[str, object], entry_point: str, arguments: Any) -> dict[str, Any]:
    try:
        positional, named = map(decode, arguments)
        if entry_point not in namespace:
            raise NameError(f"name {entry_point!r} is not defined")
        function: Any = namespace[entry_point]
        result = function(*positional, **named)
    except BaseException as error:
        return _failure(error)
    try:
        return {"value": encode(result)}
    except BaseException:  # its own methods fail, or lie about its type
        return {"value": {"opaque": type(result).__name__}}


def _failure(error: BaseException) -> dict[str, str]:
    detail = judge.describe(error)
    return {"raised": type(error).__name__, "reason": judge.reason(error), "detail": detail}
