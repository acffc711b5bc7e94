"""Programs as WebAssembly: no kernel features needed, so also where there are none.

CPython itself is the guest, a fresh instance for each program, without files, network or clock
tricks. A program or task that imports what the guest lacks is unsupported; nothing that a program
does at run time takes it out of the score.
"""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from assay.errors import SandboxError
from assay.machine import usable_cores
from assay.protocol import tests_digest
from assay.sandbox import Capabilities, sandboxes
from assay.sandbox.host import pool
from assay.sandbox.host.fork_servers import (
    ATTEMPTS,
    GRACE_S,
    PATIENCE,
    PAUSE_S,
    TOO_BUSY,
    Turnstile,
    for_oracle,
)
from assay.sandbox.host.report import BrokeWorker, Report
from assay.sandbox.host.tiers import SEPARATED, SHARED
from assay.sandbox.host.verdicts import invalid, verdict_of, with_outputs
from assay.sandbox.inside.judging import wire
from assay.sandbox.inside.judging.latest import Latest
from assay.sandbox.wasm import component
from assay.types import Cases, Job, Program, Tests, Verdict

TIER = "guest"
SLOWER = 3.0  # than native code: limits of CPU time are for that
CALL_SLOWER = 4  # a case may take several times what the reference took for its slowest
CONTROL_FAILS = "a control program fails"
START_S = 60.0
TESTS_S = 120.0  # that tests may take: to be read, and for their own work
UNSUPPORTED = "unsupported"
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
    "everything dies with the harness",
)
GAPS = (
    SHARED,
    "no files, threads, processes, sockets or packages: programs that need them fail, unless they "
    "import a module that the guest lacks, or the task's reference fails too",
    "the stack is 2 MB: recursion ends earlier than natively",
    "32 bits: what needs larger sizes or indices fails, and hashes are others",
)


class WasmSandbox:
    """A process for each worker, kept warm between calls of ``judge``."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._component = component.compiled(_note)
        self._idle: list[_Worker] = [_Worker(self._component)]
        self._alive = set(self._idle)
        self._lock = threading.Lock()
        self._alone = Turnstile()
        self._closed = False
        self._seed = secrets.token_hex(16)  # for jobs without one of their own
        self._about = component.about(self._component)

    def capabilities(self) -> Capabilities:
        digest = self._about["sha256"]["component.wasm"]
        guarantees = (*GUARANTEES, f"component {digest}")
        return Capabilities(
            "wasm", TIER, self._about["python"], guarantees, GAPS, files=False, image=digest
        )

    def judge(self, jobs: Iterable[Job]) -> Iterator[Verdict]:
        for job, report in self._reports(jobs):
            yield _verdict(job, report)

    def outputs(self, jobs: Iterable[Job]) -> Iterator[tuple[Verdict, Cases | None]]:
        for job, report in self._reports(jobs):
            told = report.get("result") or {}
            yield _verdict(job, report), with_outputs(job.tests.cases, told)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            workers, self._alive, self._idle = self._alive, set(), []
        for worker in workers:
            worker.kill()

    def _reports(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, dict[str, Any]]]:
        self._closed = False
        finished = False
        try:
            yield from pool.stream(jobs, self._run, self._workers, 0)
            finished = True
        finally:
            if not finished:
                self.close()

    def _run(self, job: Job, _doze: Callable[[], None]) -> tuple[Job, dict[str, Any]]:
        if job.environment:
            return job, {"unsupported": f"the packages of {job.environment}"}
        with self._alone.shared():
            report = self._report(job)
        if _is_doubtful(report):
            with self._alone.exclusive():
                report = self._report_alone(job, report)
        return job, report

    def _report_alone(self, job: Job, report: dict[str, Any]) -> dict[str, Any]:
        """Judge a program that got no verdict beside others, between two control programs.

        Where they pass in the same worker the failure is the program's own; where they do not,
        it is ours.
        """
        failure: dict[str, Any] = {}
        for attempt in range(1, ATTEMPTS):
            if attempt > 1:
                time.sleep(PAUSE_S * attempt)
            if failure := self._failure_of_control(job, report):
                continue
            report = self._report(job)
            if not _is_doubtful(report):
                return report
            if failure := self._failure_of_control(job, report):
                continue
            return {"broke_worker": report["lost"]} if "lost" in report else report
        return failure

    def _failure_of_control(self, job: Job, report: dict[str, Any]) -> dict[str, Any]:
        """Return why no program can be judged now, or nothing."""
        found = self._report(_control(job, report.get("cpu_s", 0.0)))
        if (found.get("result") or {}).get("status") == "pass":
            return {}
        if found.get("ended") == "wall":
            return {"sandbox_error": TOO_BUSY}
        return {"sandbox_error": found.get("sandbox_error") or found.get("lost") or CONTROL_FAILS}

    def _report(self, job: Job) -> dict[str, Any]:
        try:
            worker = self._take()
        except SandboxError as error:
            return {"sandbox_error": str(error)}
        try:
            report = worker.judge(job, f"{job.seed or self._seed} {job.task_id}")
        except _LostError as error:
            self._drop(worker)
            return {"lost": f"the WebAssembly worker was lost: {error}"}
        self._give_back(worker)
        return report

    def _take(self) -> _Worker:
        with self._lock:
            if self._closed:
                raise SandboxError("stopped")
            if self._idle:
                return self._idle.pop()
        worker = _Worker(self._component)
        with self._lock:
            if not self._closed:
                self._alive.add(worker)
                return worker
        worker.kill()
        raise SandboxError("stopped")

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            if worker in self._alive and worker.is_well:
                self._idle.append(worker)
                return
        self._drop(worker)

    def _drop(self, worker: _Worker) -> None:
        with self._lock:
            self._alive.discard(worker)
        worker.kill()


class _LostError(Exception):
    """The worker is gone or does not answer; its sample has no verdict."""


class _Worker:
    """The harness's end of a process that runs guests."""

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

    def judge(self, job: Job, seed: str) -> dict[str, Any]:
        tests, limits = job.tests, _limits(job)
        apart = tests.integrity == "separated"
        key = tests_digest(tests) if apart else ""
        body = None
        if apart and key not in self._known.items:
            body = for_oracle(tests).decode()
            self._known.add(key, None, len(body))
        message = {
            "job": {
                "preamble": tests.preamble,
                "program": job.program.code,
                "tests": "" if apart else tests.code,
                "entry_point": tests.entry_point,
                "abridged": tests.cases is not None,
            },
            "key": key,
            "tests": body,
            "seed": seed,
            "limits": limits,
        }
        try:
            wire.send(self._input.fileno(), message)
        except (OSError, ValueError) as error:
            self.is_well = False
            raise _LostError(str(error) or "it ended") from error
        # Its own watchdog is to notice first, and knows better.
        report = self._receive(limits["wall_s"] * PATIENCE + limits["cpu_s"] + TESTS_S + GRACE_S)
        if report.pop("forgotten", False) or report.get("ended") == "wall":
            self.is_well = False  # a new one is simpler than to know what this one still has
        return report

    def kill(self) -> None:
        for stream in (self._input, self._output):
            with contextlib.suppress(OSError):
                stream.close()
        self._process.kill()
        self._process.wait()

    def _receive(self, timeout_s: float) -> dict[str, Any]:
        try:
            deadline = time.monotonic() + timeout_s
            if not select.select([self._output], [], [], deadline - time.monotonic())[0]:
                raise _LostError("no answer in time")
            report: dict[str, Any] = wire.receive(self._output.fileno())
        except (OSError, EOFError, ValueError) as error:
            self.is_well = False
            raise _LostError(str(error) or "it ended") from error
        return report


def _limits(job: Job) -> dict[str, Any]:
    """In the guest's seconds, as those of the reference's slowest call are."""
    limits = job.limits
    call_cpu_s = limits.call_cpu_s * SLOWER
    if call_cpu_s and job.tests.cases:
        call_cpu_s = max(call_cpu_s, CALL_SLOWER * job.tests.cases.slowest_s)
    return {
        "cpu_s": limits.cpu_s * SLOWER,
        "call_cpu_s": call_cpu_s,
        "slower": SLOWER,
        "wall_s": limits.wall_s,
        "memory_mb": limits.memory_mb,
    }


def _control(job: Job, cpu_s: float) -> Job:
    """Return a program that needs twice the CPU time which another got until it was ended.

    It has the same wall limit: it is ended as well if the machine gives it no larger share.
    """
    code = CONTROL.format(rounds=round(2 * cpu_s * ROUNDS_PER_S))
    limits = dataclasses.replace(job.limits, cpu_s=4 * job.limits.cpu_s, call_cpu_s=0.0)
    return Job(CONTROL_TASK, 0, Program(code, ""), CONTROL_TESTS, limits)


def _is_doubtful(report: dict[str, Any]) -> bool:
    """Return whether a program has no verdict yet, by its own failure or ours."""
    return bool("sandbox_error" in report or "lost" in report or report.get("starved"))


def _verdict(job: Job, report: dict[str, Any]) -> Verdict:
    told = report.get("result") or {}
    for failed in (report, told):
        if why := failed.get("sandbox_error") or failed.get("unfit"):
            return invalid(job, "sandbox-error", why)
    if "unsupported" in report:
        return invalid(job, UNSUPPORTED, report["unsupported"])
    if "broke_worker" in report:
        return verdict_of(job, BrokeWorker(report["broke_worker"]))
    return verdict_of(job, _as_if_native(report))


def _as_if_native(report: dict[str, Any]) -> Report:
    """Return the report as a fork server would have made it."""
    how = report.get("ended")
    told = report["result"]
    if how is None or (told and told.get("status") == "fail"):
        pass  # it failed before it ended
    elif how == "stack":
        told = _failed("exception", "RecursionError: the stack of WebAssembly is exhausted", told)
    elif how == "answer":
        told = _failed("exit", report["detail"], told)
    elif how == "call":
        told = _failed("timeout", report["detail"], told)
    elif how == "busy tests":
        told = _failed("timeout", "its answers keep the tests busy for too long", told)
    else:
        told = {"ended": True, **(told or {})}
    return Report(
        result=told,
        exit_code=0,
        stopped=how if how in ("cpu", "wall") else None,
        out_of_memory=False,
        output_tail="",
        cpu_s=report["cpu_s"],
        wall_s=report["wall_s"],
        peak_mb=0.0,
    )


def _failed(reason: str, detail: str, told: dict[str, Any] | None) -> dict[str, Any]:
    known = {"failing_test": "", **(told or {})}
    known.pop("ended", None)
    return {**known, "status": "fail", "reason": reason, "detail": detail}


def _note(text: str) -> None:
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


@sandboxes.register("wasm")
def _open(workers: int, tier: str) -> WasmSandbox:
    if tier not in ("auto", TIER):
        raise SandboxError(f"wasm has one tier, {TIER}: drop --sandbox-tier {tier}")
    return WasmSandbox(workers or usable_cores())
