"""Programs in processes of their own, isolated by the kernel; needs neither root nor Docker."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import queue
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay.errors import SandboxError
from assay.sandbox import Capabilities, _pool, sandboxes
from assay.sandbox._tiers import TIERS, Tier
from assay.sandbox._worker import Worker, WorkerLostError, start_with
from assay.types import Job, Limits, Verdict

ATTEMPTS = 3
PAUSE_S = 0.2  # before an attempt after one that failed on our side
PATIENCE = 4  # the fork server's own, in wall limits
GRACE_S = 20.0
# What the kernel accounts at the end may lag behind what its limit counted: 0.87 was seen.
CPU_SLACK = 0.75


class ProcessSandbox:
    """A fork server for each worker, kept warm between calls of ``judge``."""

    def __init__(self, workers: int, tier: str = "auto") -> None:
        self._workers = workers
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        self._alive: set[Worker] = set()
        self._lock = threading.Lock()
        self._alone = _Turnstile()
        self._closed = False
        self.tier, first = _first_worker(tier)
        self._keep(first)
        self._memory = first.about["memory"]

    def capabilities(self) -> Capabilities:
        python = f"{platform.python_implementation()} {platform.python_version()}".lower()
        guarantees = (*self.tier.guarantees, f"memory limited by {self._memory}")
        return Capabilities("process", self.tier.name, python, guarantees)

    def judge(self, jobs: Iterable[Job]) -> Iterator[Verdict]:
        self._closed = False
        stream = _pool.stream(jobs, self._judge_one, self._workers)
        finished = False
        try:
            yield from stream
            finished = True
        finally:
            if not finished:
                self.close()

    def close(self) -> None:
        """End all workers; a later call of ``judge`` starts new ones."""
        with self._lock:
            self._closed = True
            workers, self._alive = self._alive, set()
        for worker in workers:
            worker.kill()

    def _judge_one(self, job: Job) -> Verdict:
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(PAUSE_S * attempt)
            with self._alone.shared():
                report = self._report(job)
            if report.get("starved"):
                with self._alone.exclusive():
                    report = self._report(job)
                if report.get("starved"):
                    report = {
                        "sandbox_error": "the machine is too busy to run it within its limits"
                    }
            if "sandbox_error" not in report:
                break
        return _verdict(job, report)

    def _report(self, job: Job) -> dict[str, Any]:
        message = {
            "preamble": job.tests.preamble,
            "program": job.program.code,
            "tests": job.tests.code,
            "limits": dataclasses.asdict(job.limits),
        }
        kills = _host_oom_kills()
        # An environment that is not there is no failure of this one program: it ends the whole.
        settings = _settings(self.tier, job.limits, job.imports, job.environment)
        try:
            worker = self._take(settings)
        except SandboxError as error:
            return {"sandbox_error": str(error)}
        try:
            report = worker.ask(message, job.limits.wall_s * PATIENCE + GRACE_S)
        except WorkerLostError as error:
            self._drop(worker)
            return {"sandbox_error": f"the fork server was lost: {error}"}
        self._idle.put(worker)
        told = report.get("result") or {}
        if "sandbox_error" in told:
            return {"sandbox_error": told["sandbox_error"]}
        killed = report.get("exit_code") == -signal.SIGKILL and report["stopped"] is None
        if killed and not report["out_of_memory"] and _host_oom_kills() > kills:
            return {"sandbox_error": "the machine ran out of memory"}
        return report

    def _take(self, settings: dict[str, Any]) -> Worker:
        while True:
            try:
                worker = self._idle.get_nowait()
            except queue.Empty:
                return self._started(settings)
            if worker.settings != settings:
                self._drop(worker)
            elif worker in self._alive:
                return worker

    def _started(self, settings: dict[str, Any]) -> Worker:
        if self._closed:
            raise SandboxError("stopped")
        worker = Worker(settings)
        with self._lock:
            if not self._closed:
                self._alive.add(worker)
                return worker
        worker.kill()
        raise SandboxError("stopped")

    def _keep(self, worker: Worker) -> None:
        self._alive.add(worker)
        self._idle.put(worker)

    def _drop(self, worker: Worker) -> None:
        with self._lock:
            self._alive.discard(worker)
        worker.kill()


class _Turnstile:
    """Many at a time, or one alone."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside = 0
        self._alone = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._alone)
            self._inside += 1
        try:
            yield
        finally:
            with self._condition:
                self._inside -= 1
                self._condition.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._alone)
            self._alone = True
            self._condition.wait_for(lambda: self._inside == 0)
        try:
            yield
        finally:
            with self._condition:
                self._alone = False
                self._condition.notify_all()


def _settings(
    tier: Tier, limits: Limits, imports: tuple[str, ...] = (), environment: str = ""
) -> dict[str, Any]:
    """What a worker is set up with once; the other limits can change from job to job."""
    once = {
        "memory_mb": limits.memory_mb,
        "processes": limits.processes,
        "files_mb": limits.files_mb,
    }
    chosen = {"tier": tier.name, "limits": once, "imports": list(imports)}
    return {**chosen, **start_with(environment, tier.name)}


def _host_oom_kills() -> int:
    """How often the kernel has killed a process for lack of memory since it started."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def _first_worker(wanted: str) -> tuple[Tier, Worker]:
    """The strongest tier this machine allows, or the one asked for and no other."""
    if wanted not in ("auto", *TIERS):
        raise SandboxError(f"unknown sandbox tier '{wanted}': choose auto, {', '.join(TIERS)}")
    refusals = []
    for tier in TIERS.values() if wanted == "auto" else [TIERS[wanted]]:
        if (tier.name == "root") != _is_full_root() and tier.name != "landlock":
            refusals.append(f"{tier.name}: run as {'root' if _is_full_root() else 'no root'}")
            continue
        try:
            return tier, Worker(_settings(tier, Limits()))
        except SandboxError as error:
            refusals.append(f"{tier.name}: {error}")
    raise SandboxError(
        f"this machine does not allow the process sandbox ({'; '.join(refusals)}): "
        "'assay sandbox doctor' says what it needs"
    )


def _is_full_root() -> bool:
    """Whether this is root with other users to change to, not the sole user of a namespace."""
    mapped = Path("/proc/self/uid_map").read_text().splitlines()
    return os.geteuid() == 0 and any(int(line.split()[2]) > 1 << 20 for line in mapped)


def _verdict(job: Job, report: dict[str, Any]) -> Verdict:
    if "sandbox_error" in report:
        return Verdict(
            task_id=job.task_id,
            sample=job.sample,
            status="invalid",
            reason="sandbox-error",
            detail=report["sandbox_error"],
            rule=job.program.rule,
        )
    told = report["result"]
    if told is None or (report["out_of_memory"] and told["status"] != "pass"):
        told = _untold(report, job.limits)
    return Verdict(
        task_id=job.task_id,
        sample=job.sample,
        status=told["status"],
        reason=told["reason"],
        detail=told["detail"],
        failing_test=told["failing_test"],
        cpu_s=report["cpu_s"],
        wall_s=report["wall_s"],
        peak_mb=report["peak_mb"],
        integrity="shared",
        rule=job.program.rule,
    )


def _untold(report: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """What happened to a program that ended before its tests did."""
    code, stopped, output = report["exit_code"], report["stopped"], report["output_tail"].strip()
    if stopped == "memory" or report["out_of_memory"]:
        reason, detail = "memory", f"used more than {limits.memory_mb} MB"
    elif stopped == "processes":
        reason, detail = "processes", f"ran more than {limits.processes} processes"
    elif stopped == "wall":
        reason, detail = "timeout", f"still running after {limits.wall_s:g} s"
    elif stopped == "cpu" or (
        -code in (signal.SIGXCPU, signal.SIGKILL) and report["cpu_s"] >= CPU_SLACK * limits.cpu_s
    ):
        reason, detail = "timeout", f"used {limits.cpu_s:g} s of CPU time"
    elif code < 0:
        reason, detail = "signal", f"ended by {signal.Signals(-code).name}"
    else:
        reason, detail = "exit", f"left with exit code {code} before its tests were done"
    last_line = output.splitlines()[-1] if output else ""
    return {
        "status": "fail",
        "reason": reason,
        "detail": f"{detail}: {last_line}" if last_line else detail,
        "failing_test": "",
    }


@sandboxes.register("process")
def _open(workers: int, tier: str) -> ProcessSandbox:
    return ProcessSandbox(workers or os.cpu_count() or 1, tier)
