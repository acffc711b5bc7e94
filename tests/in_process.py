"""The command line in this process, for tests that call it many times."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from assay.cli import main


class TookTooLongError(BaseException):
    """The command blocked: no handler of errors may take this for one."""


@dataclass(frozen=True)
class Done:
    """What a command left: exit code and what it printed."""

    code: int
    out: str
    err: str


def run_command(
    *arguments: str | Path,
    folder: Path,
    seconds: float = 60.0,
    env: Mapping[str, str] | None = None,
) -> Done:
    """Run ``assay`` with these arguments in ``folder``, with ``env`` added to the environment."""
    before, terminate = Path.cwd(), signal.getsignal(signal.SIGTERM)
    os.chdir(folder)
    try:
        with (
            mock.patch.dict(os.environ, env or {}),
            mock.patch.object(sys, "argv", ["assay", *map(str, arguments)]),
            limit_seconds(seconds),
            redirected_streams() as (out, err),
        ):
            try:
                main()
            except SystemExit as leaving:
                code = leaving.code if isinstance(leaving.code, int) else 1
            else:
                code = 0
            sys.stdout.flush()
            sys.stderr.flush()
            return Done(code, read_text(out), read_text(err))
    finally:
        os.chdir(before)
        signal.signal(signal.SIGTERM, terminate)


@contextlib.contextmanager
def redirected_streams() -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Give the command no input, streams that keep what it prints, and no warnings as errors."""
    out, err = io.BytesIO(), io.BytesIO()
    with (
        Path(os.devnull).open() as nothing,
        mock.patch.object(sys, "stdin", nothing),
        contextlib.redirect_stdout(io.TextIOWrapper(out, "utf-8", write_through=True)),
        contextlib.redirect_stderr(
            io.TextIOWrapper(err, "utf-8", "backslashreplace", write_through=True)
        ),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield out, err


def read_text(stream: io.BytesIO) -> str:
    """Return what was printed, with line ends as a pipe opened as text gives them."""
    return stream.getvalue().decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")


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
