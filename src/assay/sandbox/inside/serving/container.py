"""Start the worker's servers as a container's first process, and forward their messages.

In both directions there are frames: a byte that names the server, four bytes of length, and a piece
of its stream.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys

from ..judging import wire
from .messages import TESTS_TOO_SLOW

SERVERS = (b"z", b"o")  # zygote and oracle
PIECE = 1 << 16
END_S = 2.0  # for a server to end after it has closed its output
HOLD_MS = 2  # an oracle's answer waits this long for the zygote's, to go with it
LINK = 200  # the descriptor of a server's end of what is between the two


def main() -> None:
    """Run until the input ends. Everything else in the container ends with it."""
    servers = _started(*wire.receive(0))  # interpreter and variables
    outputs = {server.stdout.fileno(): name for name, server in servers.items()}  # type: ignore[union-attr]
    inputs = {name: server.stdin.fileno() for name, server in servers.items()}  # type: ignore[union-attr]
    poll = select.poll()
    for descriptor in (0, *outputs):
        poll.register(descriptor, select.POLLIN)
    wire.send(1, f"{sys.implementation.name} {sys.version.split()[0]}")
    held = bytearray()
    with contextlib.suppress(OSError, EOFError):  # the other side is gone, and the worker with it
        while True:
            ready = poll.poll(HOLD_MS if held else None)
            complete = not ready
            for descriptor, _ in ready:
                if descriptor == 0:
                    name, piece = wire.receive_frame(0)
                    wire.write(inputs[name], piece)
                elif piece := os.read(descriptor, PIECE):
                    held += wire.frame(outputs[descriptor], piece)
                    complete |= outputs[descriptor] == SERVERS[0]
                else:
                    wire.write(1, bytes(held) + _last_words(outputs[descriptor], servers))
                    raise EOFError
            if complete or len(held) > PIECE:
                wire.write(1, bytes(held))
                held.clear()


def _last_words(name: bytes, servers: dict[bytes, subprocess.Popen[bytes]]) -> bytes:
    """Return what is reported for a server that ended: only for an oracle that used up its time."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        if servers[name].wait(END_S) == -signal.SIGVTALRM:
            return wire.frame(name, wire.measured(wire.dumps(TESTS_TOO_SLOW)))
    return b""


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
