"""Fork this process for every program, without holding anything of any.

It receives only one byte and descriptors. Only the program's own process and the keeper know what a
program is, prints and uses. The child belongs to the keeper, so no pid or exit code is left here
for the next program to find.
"""

from __future__ import annotations

import _socket  # sockets, without the many modules around them
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from ..isolation import visible
from . import sample, script
from .messages import SCRIPTS, Settings

READY, KILL = b"r", b"k"
# Kinds of processes, by how they run a program. Each gets the descriptors that its function takes,
# after one of a pid namespace, if there are any.
SHARED, SEPARATED, SCRIPT = b"s", b"a", b"i"
RUNS: dict[bytes, tuple[int, Callable[..., NoReturn]]] = {
    SHARED: (2, sample.run),
    SEPARATED: (3, sample.run),
    SCRIPT: (4, script.run),
}
MOST_DESCRIPTORS = 5


def serve(
    link: int,
    scratch: str,
    settings: Settings,
    is_child: Callable[[int], bool],
    enter: Callable[[], None],
) -> NoReturn:
    """Fork for each message until the keeper is gone.

    ``is_child`` forks, into the pid namespace of its argument if there are any. The child calls
    ``enter`` before it learns what to run.
    """
    keeper = _socket.socket(fileno=link)
    _prepare(scratch, settings)
    keeper.send(READY)
    room = _socket.CMSG_SPACE(4 * MOST_DESCRIPTORS)
    with contextlib.suppress(ConnectionError):
        while True:
            kind, passed, _, _ = keeper.recvmsg(1, room)
            if not kind:
                break
            if kind == KILL:
                _kill_all()
                keeper.send(KILL)
                continue
            descriptors = memoryview(passed[0][2]).cast("i").tolist()
            count, run = RUNS[kind]
            namespace = descriptors[0] if len(descriptors) > count else -1
            if is_child(namespace):
                run(enter, *descriptors[-count:])
            for descriptor in descriptors:
                os.close(descriptor)
    os._exit(0)


def _kill_all() -> None:
    """Kill all that was forked here and may be signalled from here: everything, with Landlock."""
    with contextlib.suppress(OSError):
        os.kill(-1, signal.SIGKILL)


def _prepare(scratch: str, settings: Settings) -> None:
    os.environ.clear()
    os.environ.update(PATH="/usr/bin:/bin", LANG="C.UTF-8")
    os.environ.update(HOME=scratch, TMPDIR=scratch, **settings.variables)
    if "tempfile" in sys.modules:  # an import may have asked for the host's folder
        sys.modules["tempfile"].tempdir = None  # type: ignore[attr-defined]
    folders = [os.path.realpath(folder) for folder in visible.python_folders()]
    sys.path[:] = [path for path in sys.path if visible.is_below(os.path.realpath(path), folders)]
    if settings.integrity == SCRIPTS:
        script.prepare(settings.prelude)
    # Fewer pages are copied when the collector does not write into all our objects.
    gc.collect()
    gc.freeze()
