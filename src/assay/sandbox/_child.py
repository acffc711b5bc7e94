"""One sample's process: isolates itself, runs the program in a child, reports on stdout.

Started as a script by an interpreter without site packages: standard library only. Three
processes: this one, which waits; the supervisor, pid 1 of the new pid namespace, whose end kills
all that the program left; and the program, which must not be pid 1 (it would lose signals).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import select
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.sandbox import _isolation, _judge
else:  # as a script: its neighbours, without the package and all that imports
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _isolation
    import _judge

MIB = 1 << 20
RESULT_LIMIT = 1 << 16
TAIL = 400


def main() -> None:
    job = json.load(sys.stdin)
    report = os.dup(1)
    try:
        _isolation.die_with_parent()
        if os.getppid() != job["harness"]:
            return  # it died before the line above could count
        _isolation.enter_namespaces()
    except OSError as error:
        _send(report, {"sandbox_error": str(error)})
        return
    parent_gone, parent_lives = os.pipe()
    supervisor = os.fork()
    if supervisor == 0:
        try:
            os.close(parent_lives)
            _isolation.enter_private_root(job["limits"]["files_mb"])
            _isolation.drop_privileges()
            _isolation.die_with_parent()  # last, since a change of uid would undo it
            if select.select([parent_gone], [], [], 0)[0]:
                os._exit(0)
            os.close(parent_gone)
            _send(report, supervise(job, report))
        except BaseException as error:
            _send(report, {"sandbox_error": f"{type(error).__name__}: {error}"})
        os._exit(0)
    os.waitpid(supervisor, 0)


def supervise(job: dict[str, Any], report: int) -> dict[str, Any]:
    """Run the program to its end or its limit, kill all it started, tell what was seen."""
    limits = job["limits"]
    output, output_end = os.pipe()
    result, result_end = os.pipe()
    started = time.monotonic()
    sample = os.fork()
    if sample == 0:
        for descriptor in (report, output, result):
            os.close(descriptor)
        _run(job, output_end, result_end)
    os.close(output_end)
    os.close(result_end)
    kept = {output: _Kept(limits["output_bytes"]), result: _Kept(RESULT_LIMIT)}
    in_time = _watch(os.pidfd_open(sample), kept, started + limits["wall_s"])
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    _, status = os.waitpid(sample, 0)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    for source, text in kept.items():  # every writer is dead: this ends
        while text.take(os.read(source, RESULT_LIMIT)):
            pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "result": _checked(kept[result].data, job["token"]),
        "exit_code": os.waitstatus_to_exitcode(status),
        "in_time": in_time,
        "wall_s": round(time.monotonic() - started, 4),
        "cpu_s": round(used.ru_utime + used.ru_stime, 4),
        "peak_mb": round(used.ru_maxrss / 1024, 1),
        "output_tail": kept[output].data[-TAIL:].decode(errors="replace"),
    }


class _Kept:
    """The first bytes of a stream; the rest is read and forgotten, so that no writer blocks."""

    def __init__(self, room: int) -> None:
        self._room = room
        self.data = b""

    def take(self, piece: bytes) -> bool:
        self.data += piece[: self._room - len(self.data)]
        return bool(piece)


def _watch(sample: int, kept: dict[int, _Kept], deadline: float) -> bool:
    """Read what comes until the program ends; False if the deadline comes first."""
    sources = [sample, *kept]
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        readable, _, _ = select.select(sources, [], [], left)
        if sample in readable:
            return True
        for source in readable:
            if not kept[source].take(os.read(source, RESULT_LIMIT)):
                sources.remove(source)


def _run(job: dict[str, Any], output: int, result: int) -> None:
    """The program's own process."""
    token = job.pop("token")
    os.setsid()
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.chdir("/tmp")
    _limit(job["limits"])
    verdict = _judge.judge(job["preamble"], job["program"], job["tests"])
    _send(result, {"token": token, **verdict})
    os._exit(0)  # threads the program left must not delay or change the verdict


def _limit(limits: dict[str, Any]) -> None:
    cpu = math.ceil(limits["cpu_s"])
    for kind, soft, hard in (
        (resource.RLIMIT_CPU, cpu, cpu + 1),  # the second one for programs that ignore SIGXCPU
        (resource.RLIMIT_AS, limits["memory_mb"] * MIB, limits["memory_mb"] * MIB),
        (resource.RLIMIT_FSIZE, limits["files_mb"] * MIB, limits["files_mb"] * MIB),
        (resource.RLIMIT_NPROC, limits["processes"], limits["processes"]),
        (resource.RLIMIT_NOFILE, 256, 256),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        _, ceiling = resource.getrlimit(kind)
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        resource.setrlimit(kind, (soft, hard))


def _checked(data: bytes, token: str) -> dict[str, str] | None:
    """The verdict, if the stream holds just that with the right token."""
    try:
        message = json.loads(data)
    except ValueError:
        return None
    if not isinstance(message, dict) or message.pop("token", None) != token:
        return None
    return message


def _send(descriptor: int, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode()
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    main()
