"""Run a program once per case, each time in a new process, and report how each run ended.

The oracle sends inputs and compares outputs. The program's processes get inputs only.
"""

from __future__ import annotations

import _socket
import contextlib
import fcntl
import os
import signal
from marshal import dumps
from typing import Any

from ..judging import wire
from ..judging.messages import Ended
from . import sample, script
from .keeper import OUTPUT_TAIL, RESULT_BYTES, Keeper, Process, unfit
from .messages import Limits, Seen, case_limits, read_order
from .place import Place
from .watch import Kept, Watch
from .zygote import SCRIPT

SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
LARGEST_INPUT = 1 << 30
LONGEST_LINE = 400


class ScriptProcess(Process):
    """Hold a forked process that waits until it learns what to run, with an empty input."""

    kind = SCRIPT

    def _open(self) -> list[int]:
        self._input = os.memfd_create("input", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        self.errors, self._their_errors = os.pipe()
        os.set_blocking(self.errors, False)
        return [self._input, *super()._open(), self._their_errors]

    def _close_theirs(self) -> None:
        super()._close_theirs()
        os.close(self._their_errors)

    def give(self, data: bytes) -> None:
        """Set its standard input. The process can read and seek, but not change it."""
        view = memoryview(data)
        written = 0
        while written < len(view):
            written += os.pwrite(self._input, view[written:], written)
        fcntl.fcntl(self._input, fcntl.F_ADD_SEALS, SEALS)

    def close(self) -> None:
        super().close()
        os.close(self._input)
        os.close(self.errors)


class ScriptKeeper(Keeper):
    """Judge one program after the other, by its cases. Nothing of a case remains for the next."""

    def __init__(self, place: Place, machine: Any) -> None:
        super().__init__(place, machine, apart=True)

    def _new_process(self) -> Process:
        return ScriptProcess(self._place, apart=False)

    def judge(self, message: list[Any]) -> Seen:
        """Run a program for each input that the oracle sends, and report all runs as one."""
        task, limits = read_order(message)
        ours, theirs = _socket.socketpair()
        self._pass_on(theirs, limits.cpu_s, 0.0)
        theirs.close()
        with contextlib.closing(ours):
            runs = _Runs(limits, task.program)
            while not runs.is_over:
                try:
                    given = wire.receive_encoded(ours.fileno(), LARGEST_INPUT)
                except (EOFError, OSError):  # the oracle needs no more
                    break
                ended = self._run_case(runs, given)
                self.prepare()
                if ended is not None:
                    with contextlib.suppress(OSError):
                        wire.send_encoded(ours.fileno(), dumps(tuple(ended)))
            return runs.seen

    def _run_case(self, runs: _Runs, given: bytes) -> Ended | None:
        """Run one case to its end or a limit. Return None if there is no valid outcome."""
        if self._place.memory:
            self._place.memory.restart()
        self.prepare()
        process, self._next = self._next, None
        assert isinstance(process, ScriptProcess)
        try:
            process.give(given)
            limits = runs.limits_of_case()
            orders = script.Orders(runs.code or runs.program, limits.cpu_s)
            pid, said = process.send(wire.measured(dumps(tuple(orders))))
            if not pid:
                self._place.end(0)
                runs.give_up("a process could not be forked")
                return None
            return self._watch_case(runs, limits, process, pid, said)
        finally:
            process.close()

    def _watch_case(
        self, runs: _Runs, limits: Limits, process: ScriptProcess, pid: int, said: bytes
    ) -> Ended | None:
        place = self._place
        watch = Watch(limits, place, self._clock, self._machine)
        printed = Kept(limits.output_bytes, is_limit=True)
        errors, report = Kept(limits.output_bytes), Kept(RESULT_BYTES)
        if said != sample.HERE:  # it could not be isolated, and says why
            report.take(said)
        ended = os.pidfd_open(pid)
        outputs = {process.output: printed, process.errors: errors}
        watch.run(ended, outputs, sample.JOBS, None)
        slept_s = watch.slept_s()
        wall_s = watch.elapsed
        status, cpu_s = place.end(pid)
        watch.finish(place.limit.clock.now_s() if place.limit else cpu_s)
        os.close(ended)
        for source, text in {**outputs, process.control.fileno(): report}.items():
            drain(source, text)
        if printed.exceeded:
            watch.stopped = watch.stopped or "output"
        place.clean_up()
        tail = (errors.data or printed.data)[-OUTPUT_TAIL:]
        seen = Seen(
            None,
            os.waitstatus_to_exitcode(status),
            watch.stopped,
            out_of_memory=watch.killed_by() == "own limit",
            wall_s=wall_s,
            cpu_s=watch.cpu_s,
            peak_mb=place.peak_bytes() / 2**20,
            output_tail=tail.decode(errors="replace"),
            pressure=watch.pressure,
        )
        told = script.read_report(bytes(report.data), wants_code=not runs.code)
        runs.add(seen, told, slept_s)
        if runs.is_over:
            return None
        reason, detail = runs.explain(limits)
        return Ended(reason, detail, bytes(printed.data))


class _Runs:
    """Hold the runs of one program so far, and what is left of its limits."""

    def __init__(self, limits: Limits, program: str) -> None:
        self.program, self.code = program, b""
        self._limits = limits
        self._slept_s = 0.0
        self._told = script.Report()
        self._last = Seen(None)
        self.seen = Seen(None)
        self._failed = False
        self.is_over = False  # without a verdict

    def limits_of_case(self) -> Limits:
        """Return the limits of the next case: its own, and at most what is left for all cases."""
        left_s = max(0.01, self._limits.cpu_s - self.seen.cpu_s)
        limits = case_limits(self._limits)
        return limits._replace(cpu_s=min(left_s, limits.cpu_s))

    def give_up(self, why: str) -> None:
        """End the runs: the harness failed."""
        self.seen, self.is_over = unfit(why), True

    def add(self, one: Seen, told: script.Report, slept_s: float) -> None:
        """Add the run of a case. End the runs if the machine, not the program, is to blame."""
        self._last, self._told = one, told
        self._slept_s += slept_s
        self.code = told.code or self.code
        failed = bool(one.stopped or one.out_of_memory or one.exit_code or told.reason)
        self.seen = Seen(
            None,
            # Only of a program that nobody here has killed: the harness asks who else may have.
            exit_code=0 if one.stopped or one.out_of_memory else one.exit_code,
            wall_s=round(one.wall_s + (0 if one.pressure else self.seen.wall_s), 4),
            cpu_s=round(self.seen.cpu_s + one.cpu_s, 4),
            peak_mb=round(max(self.seen.peak_mb, one.peak_mb), 1),
            output_tail=self.seen.output_tail if self._failed else one.output_tail,
            pressure=one.pressure,
        )
        self._failed |= failed
        if not (told.begun or failed or told.unfit == sample.TOO_LONG):
            self.give_up(told.unfit or "the process ended before it started")
        self.is_over |= bool(one.pressure)

    def explain(self, limits: Limits) -> tuple[str, str]:
        """Return the reason and detail if the last run failed, or two empty texts."""
        one, told = self._last, self._told
        stopped = STOPPED.get(one.stopped or "")
        if one.out_of_memory:
            stopped = STOPPED["memory"]
        if stopped:
            reason, detail = stopped
            return reason, detail.format(limits=limits, output_mb=limits.output_bytes / 2**20)
        if self._slept_s > limits.wall_s:
            return "timeout", f"waited {limits.wall_s:g} s in all its cases together"
        if told.unfit:
            return "memory", told.unfit
        if told.reason:
            return told.reason, told.detail
        if one.exit_code < 0:
            return "signal", _with_line(f"ended by {_signal_name(-one.exit_code)}", one)
        if one.exit_code:
            return "exit", _with_line(f"left with exit code {one.exit_code}", one)
        return "", ""


# Reasons and details by the limit that stopped a run.
STOPPED = {
    "memory": ("memory", "used more than {limits.memory_mb} MB"),
    "processes": ("processes", "ran more than {limits.processes} processes"),
    "wall": ("timeout", "still running after {limits.wall_s:g} s"),
    "cpu": ("timeout", "used {limits.cpu_s:g} s of CPU time in one case"),
    "output": ("output", "printed more than {output_mb:g} MB"),
}


def drain(source: int, text: Kept) -> None:
    """Read what is left, without waiting: the other end may be in transit through a socket."""
    os.set_blocking(source, False)
    with contextlib.suppress(BlockingIOError):
        while text.read_from(source):
            pass


def _with_line(detail: str, one: Seen) -> str:
    lines = one.output_tail.strip().splitlines()
    return f"{detail}: {lines[-1][-LONGEST_LINE:]}" if lines else detail


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most real-time signals have none
        return f"signal {number}"
