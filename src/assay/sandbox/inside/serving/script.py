"""Run a program that reads standard input, in its own process, as the interpreter would.

The process is forked before it learns what to run. Its standard input is a file in memory, and its
outputs are pipes. Nothing of what is expected is ever here.
"""

from __future__ import annotations

import atexit
import builtins
import io
import itertools
import marshal
import math
import os
import resource
import sys
import types
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from ..judging import judge, wire
from .sample import BACKSTOP, BEGUN, CONTROL, HERE, LENIENT, OPEN_FILES, SEPARATOR, TOO_LONG, tell

LARGEST_CODE = 48 << 10  # fits into a socket's buffer, where it waits until the program has ended
CODE_FOLLOWS, NO_CODE = b"c", b"n"
NAME = "program.py"


class Orders(NamedTuple):
    """The task of one case's process."""

    program: str | bytes  # its text, or what an earlier process has compiled
    cpu_s: float


class Report(NamedTuple):
    """The report of a process. The program may have written all of it but the code."""

    begun: bool = True  # the program may have run
    unfit: str = ""  # why it has not begun
    code: bytes = b""
    reason: str = ""  # how it failed
    detail: str = ""


def run(enter: Callable[[], None], control: int, given: int, output: int, errors: int) -> NoReturn:
    """Isolate this process, then learn what to run and run it."""
    given, output, errors = os.dup(given), os.dup(output), os.dup(errors)
    os.dup2(control, CONTROL)
    try:
        os.setsid()
        enter()
        for number, descriptor in enumerate((given, output, errors)):
            os.dup2(descriptor, number)
        os.closerange(CONTROL + 1, OPEN_FILES)
        os.write(CONTROL, HERE)
        program, cpu_s = marshal.loads(wire.receive_at_once(CONTROL))
        # The keeper's exact clock decides. This one counts ticks and is only a fallback.
        ticks_s = math.ceil(BACKSTOP * cpu_s)
        resource.setrlimit(resource.RLIMIT_CPU, (ticks_s, ticks_s + 1))
        os.write(CONTROL, BEGUN)
    except MemoryError:
        tell(TOO_LONG)
    except BaseException as error:  # the harness's failure, because the program has not started
        tell(f"{type(error).__name__}: {error}")
    namespace = sys.modules["__main__"].__dict__
    given_names = len(namespace)
    try:
        code = _compile(program)
    except judge.NOT_PYTHON as error:
        tell("syntax", judge.describe(error))
    try:
        exec(code, namespace)
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException as error:
        _finish(namespace, given_names)
        tell(*(text.replace(SEPARATOR, "") for text in judge.explain_error(error)))
    _finish(namespace, given_names)
    os._exit(0)


def prepare(prelude: str) -> None:
    """Prepare this process, which is forked for every case: standard input, and a main module."""
    # A new stream: the old one remembers that it cannot seek. /dev/null can, as files do.
    encoding, errors = sys.stdin.encoding, sys.stdin.errors
    stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding, errors)
    sys.stdin = sys.__stdin__ = stdin  # type: ignore[misc]
    sys.argv = [NAME]
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    module.__dict__["__builtins__"] = builtins
    module.__dict__["__file__"] = NAME
    exec(judge.compiled(prelude, judge.PREAMBLE), module.__dict__)


def _compile(program: str | bytes) -> types.CodeType:
    """Return the code. Send it to the keeper, for the next case, before any of it runs."""
    if isinstance(program, bytes):
        code: types.CodeType = marshal.loads(program)
        return code
    code = judge.compiled(program, judge.PROGRAM)
    data = marshal.dumps(code)
    if len(data) <= LARGEST_CODE:
        os.write(CONTROL, CODE_FOLLOWS + wire.measured(data))
    else:
        os.write(CONTROL, NO_CODE)
    return code


def _finish(namespace: dict[str, object], given_names: int) -> None:
    """Do what an interpreter does at its end, as far as a program's output depends on it.

    Streams that the program opened are among the names that it has added.
    """
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        atexit._run_exitfuncs()
        own = itertools.islice(namespace.values(), given_names, None)
        for stream in (*own, sys.stdout, sys.__stdout__, sys.stderr):
            if stream is not None and (stream is sys.stdout or isinstance(stream, io.IOBase)):
                _flush(stream)
    except BaseException:  # the program's own objects: they may do anything
        os._exit(1)


def _flush(stream: object) -> None:
    try:
        stream.flush()  # type: ignore[attr-defined]
    except (ValueError, OSError, AttributeError):  # closed, or its pipe is
        return


def read_report(data: bytes, *, wants_code: bool) -> Report:
    """Parse what a process wrote into its control channel. Called by the keeper."""
    if not data.startswith(BEGUN):
        return Report(begun=False, unfit=data.decode(errors=LENIENT))
    data, code = data[len(BEGUN) :], b""
    if wants_code:
        if data.startswith(CODE_FOLLOWS):
            end = 5 + int.from_bytes(data[1:5], "big")
            code, data = data[5:end], data[end:]
        else:
            data = data.removeprefix(NO_CODE)
    if not data:
        return Report(code=code)
    reason, _, detail = data.decode(errors="replace").partition(SEPARATOR)
    return Report(code=code, reason=reason, detail=detail)
