"""Run the program in its own process: its limits, its descriptors, its run."""

from __future__ import annotations

import marshal
import math
import os
import resource
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from ..judging import answer, judge, plain, wire
from ..judging.messages import TEXTS, Result
from .messages import WorkerLimits

MIB = 1 << 20
OPEN_FILES = 256
CONTROL, CHANNEL = 3, 4  # a program's
JOBS, REPORTS, LINK = 3, 4, 5  # a server's
BACKSTOP = 4  # times the limit: next to a busy process, ticks were 1.6 times the time used
HERE, BEGUN = b"h", b"+"  # sent before the program runs
TOO_LONG = "the program's own code needs more memory than its limit"
# Separates what a process reports at its end. Not JSON: in a fork, its encoder costs 0.1 ms.
SEPARATOR, LENIENT = "\0", "surrogatepass"


class Orders(NamedTuple):
    """The task of one program's process, and how it reports the end."""

    program: str
    tests: str
    entry_point: str
    abridged: bool
    cpu_s: float
    call_cpu_s: float
    token: str


def limit_worker(limits: WorkerLimits, processes: int) -> None:
    """Set what is the same for all programs of a worker, once. They inherit it."""
    memory = _address_space() + limits.memory_mb * MIB
    files = limits.files_mb * MIB
    for kind, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, files),
        (resource.RLIMIT_NPROC, processes),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        # Not 0: a host whose core_pattern is a pipe would still start its handler, as root.
        (resource.RLIMIT_CORE, 1),
    ):
        _, ceiling = resource.getrlimit(kind)
        if ceiling != resource.RLIM_INFINITY:
            value = min(value, ceiling)
        resource.setrlimit(kind, (value, value))


def run(enter: Callable[[], None], control: int, output: int, channel: int = -1) -> NoReturn:
    """Isolate this process, then learn what to run and run it.

    ``control`` leads to the keeper, ``output`` is a pipe, and standard input is already /dev/null.
    With a ``channel`` the tests are elsewhere, and the keeper receives only failures of the
    harness.
    """
    apart = channel >= 0
    output, channel = os.dup(output), os.dup(channel) if apart else -1
    os.dup2(control, CONTROL)
    try:
        # Its own, because flags and locks of a shared one would remain for the next program.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.setsid()
        enter()
        os.dup2(output, 1)
        os.dup2(output, 2)
        if apart:
            os.dup2(channel, CHANNEL)
        os.closerange(CHANNEL + apart, OPEN_FILES)
        os.write(CONTROL, HERE)
        orders, codes = marshal.loads(wire.receive_at_once(CONTROL))
        # The fields of Orders, without its class: in a fork, what that touches costs page faults.
        program, text, entry_point, abridged, cpu_s, call_cpu_s, token = orders
        preamble, tests = marshal.loads(codes)
        # The keeper's exact clock decides. This one counts ticks and is only a fallback.
        ticks_s = math.ceil(BACKSTOP * cpu_s)
        resource.setrlimit(resource.RLIMIT_CPU, (ticks_s, ticks_s + 1))
        namespace = judge.prepared(preamble)
        os.write(CONTROL, BEGUN)
        if apart:
            os.close(CONTROL)
            del orders, token  # programs must not find what is no longer needed
    except MemoryError:
        tell(TOO_LONG)
    except BaseException as error:  # the harness's failure, because the program has not started
        tell(f"{type(error).__name__}: {error}")
    try:
        if apart:
            to_data = plain.abridged if abridged else plain.encode
            adapter = tests if text else None
            answer.serve(namespace, program, adapter, entry_point, to_data, call_cpu_s, CHANNEL)
        verdict = judge.judge(namespace, program, tests, text)
        judge.flush_output()
    except BaseException:  # a program can break even the report, which is its own failure
        os._exit(1)
    tell(token, *(text.replace(SEPARATOR, "") for text in verdict[:TEXTS]))


def tell(*parts: str) -> NoReturn:
    """Send the result, whatever the program left behind, even if an error occurs on the way."""
    try:
        os.write(CONTROL, SEPARATOR.join(parts).encode(errors=LENIENT))
    finally:
        os._exit(0)


def checked(data: bytes, token: str) -> Result | None:
    """Return the verdict, if the stream holds exactly that with the right token.

    Called by the keeper. Once the program has started, it may have written all of it.
    """
    begun = data.startswith(BEGUN)
    try:
        text = data.removeprefix(BEGUN).decode(errors=LENIENT)
    except UnicodeDecodeError:
        return None
    if not begun:
        if text == TOO_LONG:
            return judge.fail("memory", TOO_LONG)
        return Result("unfit", detail=text) if text else None
    sent, _, rest = text.partition(SEPARATOR)
    fields = tuple(rest.split(SEPARATOR))
    if sent != token or len(fields) != TEXTS:
        return None
    if fields[0] == "pass":
        return judge.PASSED if fields == judge.PASSED[:TEXTS] else None
    return judge.fail(*fields[1:])


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
