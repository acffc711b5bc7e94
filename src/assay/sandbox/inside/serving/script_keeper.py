"""Run a program once per case, each time in a new process, and report how each run ended.

The oracle sends inputs and compares outputs. The program's processes get inputs only.
"""

from __future__ import annotations

import _socket
import contextlib
import fcntl
import os
from marshal import dumps
from typing import Any

from ..judging import wire
from ..judging.messages import Ended
from . import sample, script
from .keeper import OUTPUT_TAIL, Keeper, Process, unfit
from .messages import Limits, Seen, case_limits, explain_exit, explain_limit, read_order
from .place import Place
from .watch import Kept
from .zygote import SCRIPT

SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
LARGEST_INPUT = 1 << 30


class ScriptProcess(Process):
    """A forked process that waits until it learns what to run, with an empty input."""

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
    """The judge of programs by their cases. Nothing of a case remains for the next."""

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
        printed = Kept(limits.output_bytes, is_limit=True)
        errors = Kept(limits.output_bytes)
        outputs = {process.output: printed, process.errors: errors}
        seen, report, slept_s = self._observe(limits, process, pid, said, outputs)
        tail = (errors.data or printed.data)[-OUTPUT_TAIL:]
        seen = seen._replace(
            stopped=seen.stopped or ("output" if printed.exceeded else None),
            output_tail=tail.decode(errors="replace"),
        )
        runs.add(seen, script.read_report(report, wants_code=not runs.code), slept_s)
        if runs.is_over:
            return None
        reason, detail = runs.explain(limits)
        return Ended(reason, detail, bytes(printed.data))


class _Runs:
    """The runs of one program so far, and what is left of its limits."""

    def __init__(self, limits: Limits, program: str) -> None:
        self.program, self.code = program, b""
        self._limits = limits
        self._slept_s = 0.0
        self._report = script.Report()
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

    def add(self, one: Seen, report: script.Report, slept_s: float) -> None:
        """Add the run of a case. End the runs if the machine, not the program, is to blame."""
        self._last, self._report = one, report
        self._slept_s += slept_s
        self.code = report.code or self.code
        failed = bool(one.stopped or one.out_of_memory or one.exit_code or report.reason)
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
        if not (report.begun or failed or report.unfit == sample.TOO_LONG):
            self.give_up(report.unfit or "the process ended before it started")
        self.is_over |= bool(one.pressure)

    def explain(self, limits: Limits) -> tuple[str, str]:
        """Return the reason and detail if the last run failed, or two empty texts."""
        one, report = self._last, self._report
        stopped = "memory" if one.out_of_memory else one.stopped
        if explained := explain_limit(stopped, limits):
            reason, detail = explained
            return reason, f"{detail} in one case" if stopped == "cpu" else detail
        if self._slept_s > limits.wall_s:
            return "timeout", f"waited {limits.wall_s:g} s in all its cases together"
        if report.unfit:
            return "memory", report.unfit
        if report.reason:
            return report.reason, report.detail
        return explain_exit(one.exit_code, one.output_tail) if one.exit_code else ("", "")
