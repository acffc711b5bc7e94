"""Start the worker's servers as a container's first process, and forward their messages.

In both directions there are frames: a byte that names the server, four bytes of length, and a piece
of its stream. An empty piece is a sign that the tests are at work.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys

from ..isolation.machine import LOOK_EVERY_S, Busy
from ..judging import wire
from .messages import TESTS_TOO_SLOW

SERVERS = ZYGOTE, ORACLE = b"z", b"o"
PIECE = 1 << 16
HOLD_MS = 2  # an oracle's answer waits this long for the zygote's, to go with it
LINK = 200  # the descriptor of a server's end of what is between the two


class BusyError(Exception):
    """The tests have used up their CPU time."""


def main() -> None:
    """Run until the input ends. Everything else in the container ends with it."""
    interpreter, variables, tests_cpu_s = wire.receive(0)
    servers = _started(interpreter, variables)
    outputs = {server.stdout.fileno(): name for name, server in servers.items()}  # type: ignore[union-attr]
    inputs = {name: server.stdin.fileno() for name, server in servers.items()}  # type: ignore[union-attr]
    poll = select.poll()
    for descriptor in (0, *outputs):
        poll.register(descriptor, select.POLLIN)
    wire.send(1, f"{sys.implementation.name} {sys.version.split()[0]}")
    held = bytearray()
    busy: Busy | None = None  # while the oracle owes an answer
    with contextlib.suppress(OSError, EOFError):  # the other side is gone, and the worker with it
        while True:
            ready = poll.poll(HOLD_MS if held else LOOK_EVERY_S * 1000 if busy else None)
            complete = not ready
            if busy and not ready:
                held += _look_at(busy)
            for descriptor, _ in ready:
                if descriptor == 0:
                    name, piece = wire.receive_frame(0)
                    wire.write(inputs[name], piece)
                    if name == ORACLE and not busy:
                        busy = Busy(servers[name].pid, tests_cpu_s, BusyError())
                elif piece := os.read(descriptor, PIECE):
                    held += wire.frame(outputs[descriptor], piece)
                    complete |= outputs[descriptor] == ZYGOTE
                    if outputs[descriptor] == ORACLE:
                        busy = None
                else:
                    wire.write(1, bytes(held))
                    raise EOFError
            if complete or len(held) > PIECE:
                wire.write(1, bytes(held))
                held.clear()


def _look_at(tests: Busy) -> bytes:
    """Return what is reported of tests that have not answered yet. End if they work too long.

    Nothing in the oracle ends a step of C, and the harness may not see this container's processes.
    """
    try:
        return wire.frame(ORACLE, b"") if tests.look() else b""
    except BusyError:
        wire.write(1, wire.frame(ORACLE, wire.measured(wire.dumps(TESTS_TOO_SLOW))))
        raise EOFError from None


def _started(
    interpreter: list[str], variables: dict[str, str]
) -> dict[bytes, subprocess.Popen[bytes]]:
    ends = socket.socketpair()
    started = {}
    script = (
        f"import sys; sys.path.insert(0, {sys.path[0]!r}); "
        "from inside.serving.server import main; main()"
    )
    for name, end in zip(SERVERS, ends, strict=True):
        os.dup2(end.fileno(), LINK, inheritable=True)
        started[name] = subprocess.Popen(
            [*interpreter, "-c", script],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=variables, cwd="/", pass_fds=[LINK],
        )  # fmt: skip
        os.close(LINK)
        end.close()
    return started
