"""The program's own process: its limits, its descriptors, its run."""

from __future__ import annotations

import _socket
import json
import math
import os
import resource
from collections.abc import Callable
from types import CodeType
from typing import Any, NoReturn

from . import answer, judge, kernel

MIB = 1 << 20
OPEN_FILES = 256
RESULT, CHANNEL = 3, 4
BEGUN = b"+"  # written to the result before the program has a say


def limit_worker(limits: dict[str, Any], neighbours: int) -> None:
    """What is the same for all programs of a worker: they inherit it, none pays for it."""
    memory = _address_space() + limits["memory_mb"] * MIB
    files = limits["files_mb"] * MIB
    for kind, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, files),
        (resource.RLIMIT_NPROC, neighbours + limits["processes"]),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, ceiling = resource.getrlimit(kind)
        if ceiling != resource.RLIM_INFINITY:
            value = min(value, ceiling)
        resource.setrlimit(kind, (value, value))


def run(
    job: dict[str, Any],
    preamble: CodeType,
    tests: CodeType,
    output: int,
    result: int,
    channel: _socket.socket | None,
    enter: Callable[[], None],
) -> NoReturn:
    """``output`` and ``result`` are pipes; standard input is /dev/null already.

    With a ``channel`` the tests are elsewhere, and the result tells of failures of ours alone.
    """
    token = job["token"]
    os.dup2(result, RESULT)
    try:
        os.setsid()
        enter()
        os.dup2(output, 1)
        os.dup2(output, 2)
        if channel:
            os.dup2(channel.fileno(), CHANNEL)
        os.closerange(CHANNEL + bool(channel), OPEN_FILES)  # before the preamble opens its own
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # its own /proc/self; the zygote's stays closed
        cpu = math.ceil(job["limits"]["cpu_s"])
        # The second one for programs that ignore SIGXCPU.
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
        namespace = judge.prepared(preamble)
        os.write(RESULT, BEGUN)
        if channel:
            os.close(RESULT)
    except BaseException as error:  # ours, not the program's, which has not begun
        _tell(RESULT, {"sandbox_error": f"{type(error).__name__}: {error}"})
    try:
        if channel:
            answer.serve(namespace, job, CHANNEL)
        verdict = judge.judge(namespace, job["program"], tests, job["tests"])
    except BaseException:  # a program can make even the telling fail, which is its own failure
        os._exit(1)
    _tell(RESULT, {"token": token, **verdict})


def _tell(descriptor: int, message: dict[str, str]) -> NoReturn:
    """Nothing that the program left may delay or change this, not even an error on the way."""
    try:
        os.write(descriptor, json.dumps(message).encode())
    finally:
        os._exit(0)


def checked(data: bytes, token: str) -> dict[str, str] | None:
    """The zygote's end: the verdict, if the stream holds just that with the right token.

    Once the program has begun, it may have written all of it.
    """
    try:
        message: dict[str, str] = json.loads(data.removeprefix(BEGUN))
    except (ValueError, RecursionError):
        return None
    if not data.startswith(BEGUN):
        return message
    if not isinstance(message, dict) or message.pop("token", None) != token:
        return None
    if message.keys() != judge.PASSED.keys() or set(map(type, message.values())) != {str}:
        return None
    if message["status"] == "pass":
        return judge.PASSED if message == judge.PASSED else None
    return judge.fail(message["reason"], message["detail"], message["failing_test"])


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
