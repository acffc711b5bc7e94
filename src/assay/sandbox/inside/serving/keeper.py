"""Take jobs, have a process forked for each, watch it, and report what was seen."""

from __future__ import annotations

import _socket
import contextlib
import os
import struct
import sys
from marshal import dumps
from typing import Any

from ..isolation.clock import TURN, PublishedClock
from ..isolation.machine import Machine
from ..judging import judge, wire
from ..judging.messages import Result
from ..judging.wire import Latest
from . import sample
from .messages import Limits, Seen, read_order
from .place import Place
from .watch import Kept, Watch
from .zygote import SEPARATED, SHARED

RESULT_BYTES = 1 << 16
OUTPUT_TAIL = 2000
FITTING = 1 << 16
START_S = 20.0  # for a process to be forked and isolated
CREDENTIALS = struct.Struct("iII")


class Process:
    """A forked process that waits until it learns what to run."""

    kind = SHARED

    def __init__(self, place: Place, *, apart: bool) -> None:
        self.control, theirs = _socket.socketpair()
        self.control.setsockopt(_socket.SOL_SOCKET, _socket.SO_PASSCRED, 1)
        self.control.settimeout(START_S)
        descriptors = [theirs.fileno(), *self._open()]
        # Tests in another process call the program through a channel.
        self.oracles: _socket.socket | None = None
        self.channel: _socket.socket | None = None
        if apart:
            self.oracles, self.channel = _socket.socketpair()
            descriptors.append(self.channel.fileno())
        try:
            place.start(SEPARATED if apart else self.kind, descriptors)
        finally:
            theirs.close()
            self._close_theirs()

    def _open(self) -> list[int]:
        """Open what the process reads and writes, and return its descriptors."""
        self.output, self._their_output = os.pipe()
        os.set_blocking(self.output, False)
        return [self._their_output]

    def _close_theirs(self) -> None:
        """Close what only the process needs."""
        os.close(self._their_output)

    def send(self, message: bytes) -> tuple[int, bytes]:
        """Send what to run. Return the process's pid (0 if there is none) and its first message."""
        pid, said = 0, b""
        try:
            # Most messages fit into the socket's buffer. The rest waits until the other side reads.
            count = self.control.send(message[:FITTING])
            pid, said = self._first_word()
            self.control.settimeout(None)
            if said == sample.HERE and count < len(message):
                self.control.sendall(memoryview(message)[count:])
        except TimeoutError:
            raise EOFError("the fork server does not answer") from None
        except ConnectionError:  # it ended before it had read everything
            pass
        return pid, said

    def _first_word(self) -> tuple[int, bytes]:
        said, ancillary, _, _ = self.control.recvmsg(1, _socket.CMSG_SPACE(CREDENTIALS.size))
        for _, kind, data in ancillary if said else ():
            if kind == _socket.SCM_CREDENTIALS:
                return int(CREDENTIALS.unpack(data[: CREDENTIALS.size])[0]), said
        return 0, said

    def close(self) -> None:
        os.close(self.output)
        for end in (self.control, self.oracles, self.channel):
            if end:
                end.close()


class Keeper:
    """The judge of one program after the other. Nothing of one remains for the next."""

    def __init__(self, place: Place, machine: Machine, *, apart: bool) -> None:
        self._place = place
        self._machine = machine
        self._apart = apart
        self._next: Process | None = None
        self._link = _socket.socket(fileno=sample.LINK)
        self._clock = place.limit.clock if place.limit else PublishedClock()
        self._codes: Latest[tuple[str, str], bytes] = Latest()

    def prepare(self) -> None:
        """Have the next program's process forked while the harness chooses what to run in it."""
        self._next = self._next or self._new_process()

    def _new_process(self) -> Process:
        return Process(self._place, apart=self._apart)

    def judge(self, message: list[Any]) -> Seen:
        """Run one program to its end or a limit, remove all traces, report what was seen."""
        task, limits = read_order(message)
        try:
            codes = self._compiled(task.preamble, task.tests)
        except (SyntaxError, ValueError) as error:
            self._pass_on(None)
            return unfit(f"the benchmark's own code does not compile: {error}")
        token = os.urandom(16).hex()
        orders = sample.Orders(*task[1:], limits.cpu_s, limits.call_cpu_s, token)
        if self._place.memory:
            self._place.memory.restart()
        self.prepare()
        process, self._next = self._next, None
        assert process is not None
        try:
            # marshal cannot write named tuples.
            pid, said = process.send(wire.measured(dumps((list(orders), codes))))
            if pid:
                return self._watched(limits, token, process, pid, said)
            self._place.end(0)
            self._pass_on(None)
            return unfit("a process could not be forked")
        finally:
            process.close()

    def _watched(self, limits: Limits, token: str, process: Process, pid: int, said: bytes) -> Seen:
        output = Kept(limits.output_bytes)
        seen, report, _ = self._observe(limits, process, pid, said, {process.output: output})
        late = seen.stopped == "cpu"  # a verdict after its time limit does not count
        return seen._replace(
            result=None if late else sample.checked(report, token),
            wall_s=max(round(seen.wall_s, 4), 1e-4),  # it may end before the watch begins
            cpu_s=round(seen.cpu_s, 4),
            peak_mb=round(seen.peak_mb, 1),
            output_tail=output.data[-OUTPUT_TAIL:].decode(errors="replace"),
        )

    def _observe(
        self, limits: Limits, process: Process, pid: int, said: bytes, outputs: dict[int, Kept]
    ) -> tuple[Seen, bytes, float]:
        """Watch a process to its end or a limit, and remove all traces of it.

        Return what was seen, what it reported, and how long it only waited. Its report is read at
        the end, so that no process has to wake up for it.
        """
        place, report = self._place, Kept(RESULT_BYTES)
        watch = Watch(limits, place, self._clock, self._machine)
        if said != sample.HERE:  # it could not be isolated, and says why
            report.take(said)
        if process.oracles:
            self._pass_on(process.oracles, limits.cpu_s, limits.call_cpu_s)
            process.oracles.close()
        ended = os.pidfd_open(pid)
        watch.run(ended, outputs, sample.JOBS, process.channel)
        slept_s, wall_s = watch.slept_s(), watch.elapsed
        status, cpu_s = place.end(pid)
        watch.finish(place.limit.clock.now_s() if place.limit else cpu_s)
        os.close(ended)
        for source, text in {**outputs, process.control.fileno(): report}.items():
            # Not up to the end of the stream: its other end may be in transit through a socket.
            os.set_blocking(source, False)
            with contextlib.suppress(BlockingIOError):
                while text.read_from(source):
                    pass
        place.clean_up()
        seen = Seen(
            None,
            os.waitstatus_to_exitcode(status),
            watch.stopped,
            out_of_memory=watch.killed_by() == "own limit",
            wall_s=wall_s,
            cpu_s=watch.cpu_s,
            peak_mb=place.peak_bytes() / 2**20,
            pressure=watch.pressure,
        )
        return seen, bytes(report.data), slept_s

    def _pass_on(
        self, channel: _socket.socket | None, cpu_s: float = 0.0, call_cpu_s: float = 0.0
    ) -> None:
        """Send it to the oracle, if there is one. The oracle waits for one message per program."""
        if not self._apart:
            return
        clock, passed = self._clock, []
        if channel:
            numbers = (channel.fileno(), clock.descriptor)
            data = b"".join(number.to_bytes(4, sys.byteorder) for number in numbers)
            passed = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, data)]
        self._link.sendmsg([TURN.pack(clock.kind, clock.start, cpu_s, call_cpu_s)], passed)

    def _compiled(self, preamble: str, tests: str) -> bytes:
        """Compile the benchmark's own code, which is the same for every sample of a problem."""
        key = (preamble, tests)
        if key not in self._codes.items:
            codes = judge.compiled(preamble, judge.PREAMBLE), judge.compiled(tests, judge.TESTS)
            self._codes.add(key, dumps(codes), len(preamble) + len(tests))
        return self._codes.items[key]


def unfit(why: str) -> Seen:
    """Report why a program could not be run at all."""
    return Seen(Result("unfit", detail=why))
