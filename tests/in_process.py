"""The command line in this process, for tests that call it many times."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from assay.cli import main


class TookTooLongError(BaseException):
    """The command blocked: no handler of errors may take this for one."""


@dataclass(frozen=True)
class Done:
    """What a command left: exit code and what it printed."""

    code: int
    out: str
    err: str


def run_command(*arguments: str | Path, folder: Path, seconds: float = 20.0) -> Done:
    """Run ``assay`` with these arguments in ``folder``."""
    out, err = io.StringIO(), io.StringIO()
    before, argv, terminate = Path.cwd(), sys.argv, signal.getsignal(signal.SIGTERM)
    os.chdir(folder)
    sys.argv = ["assay", *map(str, arguments)]
    try:
        with (
            limit_seconds(seconds),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            main()
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    finally:
        os.chdir(before)
        sys.argv = argv
        signal.signal(signal.SIGTERM, terminate)
    return Done(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def limit_seconds(seconds: float) -> Iterator[None]:
    """Raise TookTooLongError in what is still running after so many seconds."""

    def stop(*_: object) -> None:
        raise TookTooLongError(f"still running after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
