"""The program's own process: its limits, its descriptors, its run."""

from __future__ import annotations

import json
import math
import os
import resource
from collections.abc import Callable
from types import CodeType
from typing import Any, NoReturn

from . import judge, kernel

MIB = 1 << 20
OPEN_FILES = 256
RESULT = 3


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
    enter: Callable[[], None],
) -> NoReturn:
    """``output`` and ``result`` are pipes; standard input is /dev/null already."""
    token = job["token"]
    try:
        os.setsid()
        enter()
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(result, RESULT)
        result = RESULT
        os.closerange(RESULT + 1, OPEN_FILES)  # before the preamble, which may open its own
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # its own /proc/self; the zygote's stays closed
        cpu = math.ceil(job["limits"]["cpu_s"])
        # The second one for programs that ignore SIGXCPU.
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
        namespace = judge.prepared(preamble)
    except BaseException as error:  # ours, not the program's, which has not begun
        _tell(result, {"token": token, "sandbox_error": f"{type(error).__name__}: {error}"})
    try:
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
    """The zygote's end: the verdict, if the stream holds just that with the right token."""
    try:
        message = json.loads(data)
    except ValueError:
        return None
    if not isinstance(message, dict) or message.pop("token", None) != token:
        return None
    return message


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
