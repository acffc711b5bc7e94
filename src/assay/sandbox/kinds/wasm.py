"""Run programs as WebAssembly, which needs no kernel features.

CPython itself is the guest. Each program gets a new instance without files, network or clock
tricks. A program or task that imports what the guest lacks is unsupported. Nothing that a program
does at run time takes it out of the score.
"""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import select
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from assay.errors import SandboxError
from assay.protocol import tests_digest
from assay.sandbox import Capabilities, run_here, sandboxes
from assay.sandbox.environments import interpreters
from assay.sandbox.host.fork_servers import (
    ATTEMPTS,
    GRACE_S,
    PATIENCE,
    PAUSE_S,
    TOO_BUSY,
    for_oracle,
    task_of,
)
from assay.sandbox.host.report import BrokeWorker, SandboxFailure, WorkerReport
from assay.sandbox.host.tiers import SEPARATED, SHARED
from assay.sandbox.host.verdicts import INVALID, verdict_of, with_outputs
from assay.sandbox.host.warm import WarmWorkers
from assay.sandbox.inside.judging import wire
from assay.sandbox.inside.judging.messages import Result
from assay.sandbox.inside.judging.wire import Latest
from assay.sandbox.wasm import component
from assay.sandbox.wasm.exchange import GuestLimits, GuestReport, GuestRequest, How, read_report
from assay.types import Cases, Job, Program, Tests, Verdict
from assay.work.machine import usable_cores

TIER = "guest"
SLOWER = 3.0  # than native code: limits of CPU time are for that
CALL_SLOWER = 4  # a case may take several times what the reference took for its slowest
CONTROL_FAILS = "a control program fails"
START_S = 60.0
TESTS_S = 120.0  # that tests may take: to be read, and for their own work
# Passes in every worker that works.
CONTROL = "def f(x):\n    for _ in range({rounds}): pass\n    return x + 1"
CONTROL_TASK = "control"
CONTROL_TESTS = Tests("f", "assert f(1) == 2", integrity="separated")
ROUNDS_PER_S = 18_000_000  # of CPU time; 19 million were measured
GUARANTEES = (
    "no network, no files, no other process, no system calls: only what a WebAssembly guest has",
    "limits on CPU, wall time and memory",
    "a fresh instance for each program, nothing left for the next",
    SEPARATED,
    "all processes end when assay ends, even if it is killed",
)
GAPS = (
    SHARED,
    "no files, threads, processes, sockets or packages: programs that need them fail, unless they "
    "import a module that the guest lacks, or the task's reference fails too",
    "the stack is 2 MB: deep recursion fails earlier than in the other kinds",
    "32 bits: programs that need larger sizes or indices fail, and hash() gives other numbers",
)


C = TypeVar("C")
P = TypeVar("P")
R = TypeVar("R")
Seen = GuestReport | SandboxFailure
Outcome = Seen | BrokeWorker


class WasmSandbox(WarmWorkers["_Worker"]):
    """One process per worker, warm between calls of ``judge``."""

    def __init__(self, workers: int) -> None:
        self._component = component.compiled(_note)
        super().__init__(workers, _Worker(self._component))
        self._seed = secrets.token_hex(16)  # for jobs without one of their own
        self._about = component.about(self._component)

    def capabilities(self) -> Capabilities:
        digest = self._about.sha256["component.wasm"]
        guarantees = (*GUARANTEES, f"component {digest}")
        return Capabilities(
            "wasm", TIER, self._about.python, guarantees, GAPS, files=False, image=digest
        )

    def judge(self, jobs: Iterable[Job]) -> Iterator[Verdict]:
        for job, outcome in self._reports(jobs):
            yield _verdict(job, outcome)

    def outputs(self, jobs: Iterable[Job]) -> Iterator[tuple[Verdict, Cases | None]]:
        for job, outcome in self._reports(jobs):
            result = outcome.result if isinstance(outcome, GuestReport) else None
            yield _verdict(job, outcome), with_outputs(job.tests.cases, result)

    run_stage = run_here

    def _reports(self, jobs: Iterable[Job]) -> Generator[tuple[Job, Outcome], None, None]:
        return self._stream(jobs, self._run, 0)

    def _run(self, job: Job, doze: Callable[[], None]) -> tuple[Job, Outcome]:
        if job.environment:
            lack = f"the packages of {job.environment}"
            return job, GuestReport(Result("unsupported", detail=lack))
        if job.tests.is_script:
            return job, GuestReport(Result("unsupported", detail="programs on standard input"))
        with self._turn(job, doze):
            report = self._report(job)
        if not report.doubtful:
            return job, report
        with self._alone.exclusive():
            return job, self._report_alone(job, report)

    def _report_alone(self, job: Job, report: Seen) -> Outcome:
        """Judge a program that got no verdict next to others, between two control programs.

        If both pass in the same worker, the failure is the program's own. Otherwise it is the
        harness's.
        """
        failure = ""
        for attempt in range(1, ATTEMPTS):
            if attempt > 1:
                time.sleep(PAUSE_S * attempt)
            if failure := self._failure_of_control(job, report):
                continue
            report = self._report(job)
            if not report.doubtful:
                return report
            if failure := self._failure_of_control(job, report):
                continue
            lost = _why_lost(report)
            return BrokeWorker(lost) if lost else report
        return SandboxFailure(failure)

    def _failure_of_control(self, job: Job, report: Seen) -> str:
        """Return why no program can be judged now, or an empty text."""
        cpu_s = report.cpu_s if isinstance(report, GuestReport) else 0.0
        control = self._report(_control(job, cpu_s))
        if isinstance(control, SandboxFailure):
            return control.why
        if control.result and control.result.status == "pass":
            return ""
        return TOO_BUSY if control.ended == "wall" else control.lost or CONTROL_FAILS

    def _report(self, job: Job) -> Seen:
        try:
            worker = self._take(lambda _: True, lambda: _Worker(self._component))
        except SandboxError as error:
            return SandboxFailure(str(error))
        try:
            report = worker.judge(job, f"{job.seed or self._seed} {job.task_id}")
        except _LostError as error:
            self._drop(worker)
            return SandboxFailure(f"the WebAssembly worker was lost: {error}", lost=True)
        if worker.is_well:
            self._give_back(worker)
        else:
            self._drop(worker)
        return report


def _why_lost(report: Seen) -> str:
    if isinstance(report, GuestReport):
        return report.lost
    return report.why if report.lost else ""


class _LostError(Exception):
    """The worker is gone or does not answer. Its sample has no verdict."""


class _Worker:
    """A process that runs guests."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-m", "assay.sandbox.wasm.worker", str(path)]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is the harness's to handle
            )
        except OSError as error:
            raise SandboxError(f"the WebAssembly worker did not start ({error})") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._known: Latest[str, None] = Latest()  # tests, to the guest that runs them
        self.is_well = True
        try:
            self._receive(START_S)
        except _LostError as error:
            self.kill()
            raise SandboxError(f"the WebAssembly worker did not start ({error})") from error

    def judge(self, job: Job, seed: str) -> GuestReport:
        tests, limits = job.tests, _limits(job)
        apart = tests.integrity == "separated"
        key = tests_digest(tests) if apart else ""
        body = None
        if apart and key not in self._known.items:
            body = for_oracle(tests).decode()
            self._known.add(key, None, len(body))
        request = GuestRequest(task_of(job), key, body, seed, limits)
        try:
            wire.send(self._input.fileno(), request)
        except (OSError, ValueError) as error:
            self.is_well = False
            raise _LostError(str(error) or "it ended") from error
        # Its own watchdog should notice first, because it knows more.
        report = self._receive(limits.wall_s * PATIENCE + limits.cpu_s + TESTS_S + GRACE_S)
        if report.forgotten or report.ended == "wall":
            self.is_well = False  # a new one is simpler than tracking what this one still has
        return report

    def kill(self) -> None:
        for stream in (self._input, self._output):
            with contextlib.suppress(OSError):
                stream.close()
        self._process.kill()
        self._process.wait()

    def _receive(self, timeout_s: float) -> GuestReport:
        try:
            deadline = time.monotonic() + timeout_s
            if not select.select([self._output], [], [], deadline - time.monotonic())[0]:
                raise _LostError("no answer in time")
            return read_report(wire.receive(self._output.fileno()))
        except (OSError, EOFError, ValueError) as error:
            self.is_well = False
            raise _LostError(str(error) or "it ended") from error


def _limits(job: Job) -> GuestLimits:
    """Return the limits in the guest's seconds, like those of the reference's slowest call."""
    limits = job.limits
    call_cpu_s = limits.call_cpu_s * SLOWER
    if call_cpu_s and job.tests.cases:
        call_cpu_s = max(call_cpu_s, CALL_SLOWER * job.tests.cases.slowest_s)
    return GuestLimits(limits.cpu_s * SLOWER, call_cpu_s, SLOWER, limits.wall_s, limits.memory_mb)


def _control(job: Job, cpu_s: float) -> Job:
    """Return a program that needs twice the CPU time that another got until it was ended.

    It has the same wall limit, so it is ended as well if the machine gives it no larger share.
    """
    code = CONTROL.format(rounds=round(2 * cpu_s * ROUNDS_PER_S))
    limits = dataclasses.replace(job.limits, cpu_s=4 * job.limits.cpu_s, call_cpu_s=0.0)
    return Job(CONTROL_TASK, 0, Program(code, ""), CONTROL_TESTS, limits)


def _verdict(job: Job, outcome: Outcome) -> Verdict:
    return verdict_of(job, _as_if_native(outcome) if isinstance(outcome, GuestReport) else outcome)


def _as_if_native(report: GuestReport) -> WorkerReport:
    """Return the report as a fork server would have made it."""
    result, how = report.result, report.ended
    if how and not (result and (result.status == "fail" or result.status in INVALID)):
        result = _cut_off(result or Result("ended"), how, report.detail)  # it did not fail before
    return WorkerReport(
        result=result,
        exit_code=0,
        stopped=how if how in ("cpu", "wall") else None,
        out_of_memory=False,
        output_tail="",
        cpu_s=report.cpu_s,
        wall_s=report.wall_s,
        peak_mb=0.0,
    )


def _cut_off(result: Result, how: How, detail: str) -> Result:
    """Return the result of a program whose instance ended. The failing test and groups stay."""
    reasons = {
        "stack": ("exception", "RecursionError: the stack of WebAssembly is exhausted"),
        "answer": ("exit", detail),
        "call": ("timeout", detail),
        "busy tests": ("timeout", "its answers take too long to check"),
    }
    if how not in reasons:
        return result._replace(status="ended")
    reason, detail = reasons[how]
    return result._replace(status="fail", reason=reason, detail=detail)


def _note(text: str) -> None:
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


@sandboxes.register("wasm")
def _open(workers: int, tier: str, python: str = "") -> WasmSandbox:
    if tier not in ("auto", TIER):
        raise SandboxError(f"--sandbox-tier {tier}: wasm has one tier, {TIER}. Omit the option.")
    opened = WasmSandbox(workers or usable_cores())
    interpreters.require(python, opened, "Use --sandbox process")
    return opened
