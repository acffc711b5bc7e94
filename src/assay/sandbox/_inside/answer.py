"""The program's side of separated tests: it is called with plain data and answers with plain data.

Nothing here is trusted by the other side. A program may answer in its own way, which gains it
nothing: it does not know what is expected.
"""

from __future__ import annotations

import time
from typing import Any, NoReturn

from . import calling, wire
from .plain import abridged, encode

FLUSH_S = 0.002  # many short calls share a message


def serve(namespace: dict[str, object], job: dict[str, Any], channel: int) -> NoReturn:
    """Load the program, then answer until the other side has heard enough."""
    unloaded = calling.load(namespace, job["program"])
    to_data = abridged if job["abridged"] else encode
    answers: list[Any] = []
    if job["limits"]["call_cpu_s"]:  # the time for loading is not the first call's
        wire.send(channel, answers)
    while True:
        flushed = time.monotonic()
        for positional, named in wire.receive_calls(channel):
            answers.append(
                unloaded
                or calling.result(namespace, job["entry_point"], positional, named, to_data)
            )
            if time.monotonic() - flushed > FLUSH_S:
                wire.send(channel, answers)
                answers, flushed = [], time.monotonic()
        if answers:
            wire.send(channel, answers)
            answers = []
