"""Run a program as a separate process, and return what it printed and how it ended.

The text of this file is sent to sandboxes: it is the code before every program of ``/run_code``.
It therefore imports the standard library only, and is never imported by the server.
"""

from __future__ import annotations

import base64
import os
import select
import signal
import sys
import time
import types

JOB: tuple[str, str, str, list[tuple[str, str]], list[str], int]  # set by the job's own code

PIECE = 1 << 16
MOST_TEED = 1 << 16
MOST_FETCHED = 20 << 20
SHELLS = {"bash": "/bin/bash"}
SUFFIXES = {"bash": ".sh"}
LOOK_EVERY_MS = 5


def run() -> object:
    """Run the job. Return exit code, seconds, both outputs and files; or a text if it cannot be."""
    language, code, stdin, files, names, most = JOB
    path = os.path.join(os.getcwd(), f"tmp{os.urandom(4).hex()}{SUFFIXES.get(language, '.py')}")
    try:
        for name, content in files:
            _write(name, base64.b64decode(content))
        _write(path, code.encode(errors="surrogatepass"))
    except (OSError, ValueError) as error:
        return f"files: {error}"
    started = time.monotonic()
    pid, pipes = _start(language, path, code)
    status, outputs = _watch(pid, pipes, stdin.encode(errors="surrogatepass"), most)
    seconds = time.monotonic() - started
    # Not bytes: large values of that type would be replaced by their digest.
    out, err = map(bytearray, outputs)
    return os.waitstatus_to_exitcode(status), seconds, out, err, _fetch(names)


def _write(name: str, content: bytes) -> None:
    if folder := os.path.dirname(name):
        os.makedirs(folder, exist_ok=True)
    with open(name, "wb") as file:
        file.write(content)


def _fetch(names: list[str]) -> list[tuple[str, bytearray]]:
    contents, room = [], MOST_FETCHED
    for name in names:
        try:
            with open(name, "rb") as file:
                content = file.read(room + 1)
        except (OSError, ValueError):  # it is not there, or no file can have such a name
            continue
        if len(content) <= room:
            room -= len(content)
            contents.append((name, bytearray(content)))
    return contents


def _start(language: str, path: str, code: str) -> tuple[int, tuple[int, int, int]]:
    """Fork the program's process. Return its pid, and our ends of its standard streams."""
    their_input, our_input = os.pipe()
    our_output, their_output = os.pipe()
    our_errors, their_errors = os.pipe()
    pid = os.fork()
    if pid:
        for descriptor in (their_input, their_output, their_errors):
            os.close(descriptor)
        return pid, (our_input, our_output, our_errors)
    try:
        for number, descriptor in enumerate((their_input, their_output, their_errors)):
            os.dup2(descriptor, number)
        os.closerange(3, 1 << 12)
        if language in SHELLS:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.execv(SHELLS[language], [SHELLS[language], path])
        _be_python(path, code)
    finally:
        os._exit(127)


def _be_python(path: str, code: str) -> None:
    """Do in this process what ``python path`` does."""
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(
        2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=__builtins__)
    sys.modules["__main__"] = main
    sys.argv = [path]
    sys.path.insert(0, os.path.dirname(path))
    os._exit(_finish(_execute(path, code, main)))


def _execute(path: str, code: str, main: types.ModuleType) -> int:
    try:
        exec(compile(code, path, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as error:
        if error.code is None:
            return 0
        if isinstance(error.code, int):
            return error.code & 0xFF
        print(error.code, file=sys.stderr)
        return 1
    except BaseException as error:
        below = error.__traceback__.tb_next if error.__traceback__ else None
        error.__traceback__ = below
        sys.excepthook(type(error), error, below)
        return 1
    return 0


def _finish(status: int) -> int:
    """Do what an interpreter does at its end."""
    import atexit

    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        atexit._run_exitfuncs()
        sys.stderr.flush()
        sys.stdout.flush()
    except BaseException:  # as an interpreter whose output cannot be written
        return status or 120
    return status


def _watch(
    pid: int, pipes: tuple[int, int, int], stdin: bytes, most: int
) -> tuple[int, tuple[bytes, bytes]]:
    """Give the process its input and collect its outputs until it ends."""
    our_input, our_output, our_errors = pipes
    pieces: dict[int, list[bytes]] = {our_output: [], our_errors: []}
    room = {our_output: most, our_errors: most}
    poll = select.poll()
    for descriptor in pipes:
        os.set_blocking(descriptor, False)
    for descriptor in pieces:
        poll.register(descriptor, select.POLLIN)
    if stdin:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        poll.register(our_input, select.POLLOUT)
    else:
        os.close(our_input)
    try:
        ended = os.pidfd_open(pid)
        poll.register(ended, select.POLLIN)
    except OSError:
        ended = -1
    view, teed, status = memoryview(stdin), 0, None
    while status is None:
        for descriptor, _ in poll.poll(LOOK_EVERY_MS if ended < 0 else None):
            if descriptor == our_input:
                try:
                    view = view[os.write(our_input, view[:PIECE]) :]
                except OSError:  # it does not read
                    view = view[:0]
                if not view:
                    poll.unregister(our_input)
                    os.close(our_input)
            elif descriptor in pieces:
                piece = _read(descriptor)
                if not piece:
                    poll.unregister(descriptor)
                    continue
                pieces[descriptor].append(piece[: room[descriptor]])
                room[descriptor] -= len(pieces[descriptor][-1])
                if descriptor == our_output and teed < MOST_TEED:
                    teed += os.write(1, piece)  # what is known of a program that is stopped
        done, code = os.waitpid(pid, os.WNOHANG)
        status = code if done else None
    for descriptor in pieces:
        while room[descriptor] > 0 and (piece := _read(descriptor)):
            pieces[descriptor].append(piece[: room[descriptor]])
            room[descriptor] -= len(pieces[descriptor][-1])
    return status, (b"".join(pieces[our_output]), b"".join(pieces[our_errors]))


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, PIECE)
    except OSError:  # nothing is there
        return b""
