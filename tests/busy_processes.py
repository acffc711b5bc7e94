"""Processes that compute without a pause. They end with the test, even if it is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

LOOP = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass\n"


@contextmanager
def busy_processes(count: int, own_sessions: bool = False) -> Iterator[list[int]]:
    """Run ``count`` of them, in a session (and so a scheduling group) each if asked for."""
    with ExitStack() as stack:
        started = []
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", LOOP], start_new_session=own_sessions)
            stack.callback(process.wait)
            stack.callback(process.kill)
            started.append(process.pid)
        yield started
