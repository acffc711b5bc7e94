"""Takes jobs, has a process forked for each, watches it, and tells what was seen."""

from __future__ import annotations

import _socket
import os
import struct
import sys
from collections.abc import Callable
from marshal import dumps
from types import CodeType
from typing import Any

from . import judge, sample, wire
from .clock import TURN, PublishedClock
from .latest import Latest
from .machine import Machine
from .place import Place
from .watch import Kept, Watch
from .zygote import SEPARATED, SHARED

RESULT_BYTES = 1 << 16
OUTPUT_TAIL = 400
START_S = 20.0  # for a process to be forked and isolated
CREDENTIALS = struct.Struct("iII")


class Keeper:
    """Judges one program after the other; nothing of one is there for the next."""

    def __init__(self, place: Place, machine: Machine) -> None:
        self._place = place
        self._machine = machine
        self._link = _socket.socket(fileno=sample.LINK)
        self._clock = place.limit.clock if place.limit else PublishedClock()
        self._codes: Latest[tuple[str, str], tuple[CodeType, CodeType]] = Latest()

    def judge(self, job: dict[str, Any]) -> dict[str, Any]:
        """Run one program to its end or a limit, remove all traces, tell what was seen."""
        try:
            preamble, code = self._compiled(job["preamble"], job["tests"])
        except (SyntaxError, ValueError) as error:
            self._pass_on(None)
            return {"sandbox_error": f"the benchmark's own code does not compile: {error}"}
        job |= {"preamble": preamble, "code": code, "token": os.urandom(16).hex()}
        control, their_control = _socket.socketpair()
        control.setsockopt(_socket.SOL_SOCKET, _socket.SO_PASSCRED, 1)
        control.settimeout(START_S)
        output, their_output = os.pipe()
        given = [their_control.fileno(), their_output]
        # Tests elsewhere call the program through a channel.
        oracles, channel = _socket.socketpair() if job["apart"] else (None, None)
        if channel:
            given.append(channel.fileno())
        if self._place.limit:
            self._place.limit.restart()
        try:
            self._place.start(SEPARATED if channel else SHARED, given)
            their_control.close()
            os.close(their_output)
            return self._finished(job, control, output, oracles, channel)
        except TimeoutError:
            raise EOFError("the fork server does not answer") from None
        finally:
            os.close(output)
            for end in (control, their_control, oracles, channel):
                if end:
                    end.close()

    def _finished(
        self,
        job: dict[str, Any],
        control: _socket.socket,
        output: int,
        oracles: _socket.socket | None,
        channel: _socket.socket | None,
    ) -> dict[str, Any]:
        limits, limit = job["limits"], self._place.limit
        program, said = _sender(control)
        control.settimeout(None)  # which also makes it take as much as there is
        if not program:
            self._place.end(0)
            self._pass_on(None)
            return {"sandbox_error": "a process could not be forked"}
        watch = Watch(limits, self._place, self._clock, self._machine)
        kept = {output: Kept(limits["output_bytes"]), control.fileno(): Kept(RESULT_BYTES)}
        if said != sample.HERE:  # it could not be isolated, and says why
            kept[control.fileno()].take(said)
        ended = os.pidfd_open(program)
        if oracles:
            self._pass_on(oracles, limits["call_cpu_s"])
            oracles.close()
        try:
            if said == sample.HERE:
                wire.send_encoded(control.fileno(), dumps(job))
        except OSError:  # it ended before it had read it all
            pass
        watch.run(ended, kept, sample.JOBS, channel)
        wall_s = watch.elapsed
        status, cpu_s = self._place.end(program)
        for source, text in kept.items():  # every writer is dead: this ends
            while text.read_from(source):
                pass
        os.close(ended)
        self._place.clean_up()
        if limit:
            cpu_s = limit.clock.now_s()
        return {
            "result": sample.checked(kept[control.fileno()].data, job["token"]),
            "exit_code": os.waitstatus_to_exitcode(status),
            "stopped": watch.stopped,
            "pressure": watch.pressure,
            "out_of_memory": watch.out_of_memory(),
            "wall_s": round(wall_s, 4),
            "cpu_s": round(max(cpu_s, watch.cpu_s), 4),
            "peak_mb": round(self._place.peak_bytes() / 2**20, 1),
            "output_tail": kept[output].data[-OUTPUT_TAIL:].decode(errors="replace"),
        }

    def _pass_on(self, channel: _socket.socket | None, call_cpu_s: float = 0.0) -> None:
        """Send it to the oracle, which waits for one message a program."""
        clock, passed = self._clock, []
        if channel:
            numbers = (channel.fileno(), clock.descriptor)
            data = b"".join(number.to_bytes(4, sys.byteorder) for number in numbers)
            passed = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, data)]
        self._link.sendmsg([TURN.pack(clock.kind, clock.start, call_cpu_s)], passed)

    def _compiled(self, preamble: str, tests: str) -> tuple[CodeType, CodeType]:
        """Compile the benchmark's own code: the same for every sample of a problem."""
        key = (preamble, tests)
        if key not in self._codes.items:
            codes = judge.compiled(preamble, judge.PREAMBLE), judge.compiled(tests, judge.TESTS)
            self._codes.add(key, codes, len(preamble) + len(tests))
        return self._codes.items[key]


def _sender(control: _socket.socket) -> tuple[int, bytes]:
    """Return the pid of the process at the other end and its first word; 0 if there is none."""
    said, passed, _, _ = control.recvmsg(1, _socket.CMSG_SPACE(CREDENTIALS.size))
    for _, kind, data in passed if said else ():
        if kind == _socket.SCM_CREDENTIALS:
            return int(CREDENTIALS.unpack(data[: CREDENTIALS.size])[0]), said
    return 0, said


def start(place: Place, machine: Machine) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return Keeper(place, machine).judge
