"""Programs in processes of their own, isolated by the kernel; needs neither root nor Docker."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay import codec
from assay.errors import SandboxError
from assay.protocol import tests_digest
from assay.sandbox import Capabilities, _pool, sandboxes
from assay.sandbox._inside import wire
from assay.sandbox._tiers import TIERS, Tier
from assay.sandbox._worker import Worker, WorkerLostError, start_with
from assay.types import Cases, Job, Limits, Program, Tests, Verdict

ATTEMPTS = 3
PAUSE_S = 0.2  # before an attempt after one that failed on our side
PATIENCE = 4  # the fork server's own, in wall limits
GRACE_S = 20.0
PROBE = Job("", 0, Program("", ""), Tests("", "", integrity="separated"))
SLOWER = 4
# What the kernel accounts at the end may lag behind what its limit counted: 0.87 was seen.
CPU_SLACK = 0.75


class ProcessSandbox:
    """A fork server for each worker, kept warm between calls of ``judge``."""

    def __init__(self, workers: int, tier: str = "auto") -> None:
        self._workers = workers
        self._idle: list[Worker] = []
        self._alive: set[Worker] = set()
        self._lock = threading.Lock()
        self._alone = _Turnstile()
        self._closed = False
        self.tier, first = _first_worker(tier)
        self._alive.add(first)
        self._idle.append(first)
        self._memory = first.memory_limit

    def capabilities(self) -> Capabilities:
        python = f"{platform.python_implementation()} {platform.python_version()}".lower()
        guarantees = (*self.tier.guarantees, f"memory limited by {self._memory}")
        return Capabilities("process", self.tier.name, python, guarantees)

    def judge(self, jobs: Iterable[Job]) -> Iterator[Verdict]:
        for job, report in self._reports(jobs):
            yield _verdict(job, report)

    def outputs(self, jobs: Iterable[Job]) -> Iterator[tuple[Verdict, Cases | None]]:
        for job, report in self._reports(jobs):
            yield _verdict(job, report), _with_outputs(job.tests.cases, report.get("told", {}))

    def _reports(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, dict[str, Any]]]:
        self._closed = False
        # A dozing one keeps its process and all that it has imported: not too many of them.
        stream = _pool.stream(jobs, self._run, self._workers, 3 + self._workers // 2)
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
            workers, self._alive, self._idle = self._alive, set(), []
        for worker in workers:
            worker.kill()

    def _run(self, job: Job, doze: Callable[[], None]) -> tuple[Job, dict[str, Any]]:
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(PAUSE_S * attempt)
            with self._alone.shared():
                report = self._report(job, doze)
            if report.get("starved"):
                with self._alone.exclusive():
                    report = self._report(job, lambda: None)
                if report.get("starved"):
                    report = {
                        "sandbox_error": "the machine is too busy to run it within its limits"
                    }
            if "sandbox_error" not in report:
                break
        return job, report

    def _report(self, job: Job, doze: Callable[[], None]) -> dict[str, Any]:
        tests = job.tests
        message = {
            "preamble": tests.preamble,
            "program": job.program.code,
            "tests": tests.code,
            "entry_point": tests.entry_point,
            "abridged": tests.cases is not None,  # code may want to look at all of a large value
            "limits": _limits(job),
        }
        timeout_s = job.limits.wall_s * PATIENCE + GRACE_S
        kills = _host_oom_kills()
        # An environment that is not there is no failure of this one program: it ends the whole.
        settings = _settings(self.tier, job)
        try:
            worker = self._take(settings)
        except SandboxError as error:
            return {"sandbox_error": str(error)}
        try:
            if tests.integrity == "shared":
                report = worker.judge(message, timeout_s, doze)
            else:
                report = worker.judge_apart(
                    message, tests_digest(tests), lambda: _for_oracle(tests), timeout_s, doze
                )
        except (WorkerLostError, SandboxError) as error:
            self._drop(worker)
            return {"sandbox_error": f"the fork server was lost: {error}"}
        with self._lock:
            if worker in self._alive:
                self._idle.append(worker)
        for told in (report, report.get("result") or {}, report.get("told", {})):
            if "sandbox_error" in told:
                return {"sandbox_error": told["sandbox_error"]}
        killed = report.get("exit_code") == -signal.SIGKILL and report["stopped"] is None
        if killed and not report["out_of_memory"] and _host_oom_kills() > kills:
            return {"sandbox_error": "the machine ran out of memory"}
        return report

    def _take(self, settings: dict[str, Any]) -> Worker:
        """An idle worker of this kind, or a new one; too many of other kinds are ended."""
        with self._lock:
            for worker in self._idle:
                if worker.settings == settings:
                    self._idle.remove(worker)
                    return worker
            many = self._idle and len(self._alive) >= 2 * self._workers
            needless = self._idle.pop(0) if many else None
        if needless:
            self._drop(needless)
        return self._started(settings)

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


def _settings(tier: Tier, job: Job) -> dict[str, Any]:
    """What a worker is set up with once; the other limits can change from job to job.

    Integrity, since programs must not be forked from a process that has seen separated tests.
    """
    limits = job.limits
    once = {
        "memory_mb": limits.memory_mb,
        "processes": limits.processes,
        "files_mb": limits.files_mb,
    }
    chosen = {
        "tier": tier.name,
        "limits": once,
        "imports": list(job.imports),
        "integrity": job.tests.integrity,
    }
    return {**chosen, **start_with(job.environment, tier.name)}


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
            return tier, Worker(_settings(tier, PROBE))
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
    told = report.get("told", report["result"])
    if told is None or "ended" in told or (report["out_of_memory"] and told["status"] != "pass"):
        told = {**_untold(report, job.limits), **_heard_before_the_end(told)}
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
        integrity=job.tests.integrity,
        rule=job.program.rule,
        groups={name: tuple(counts) for name, counts in told.get("groups", {}).items()},
    )


def _with_outputs(cases: Cases | None, told: dict[str, Any]) -> Cases | None:
    if cases is None or "outputs" not in told:
        return None
    digest = codec.digest([cases.digest, told["outputs"]])
    return Cases(cases.inputs, told["outputs"], digest, told["slowest_s"])


def _heard_before_the_end(told: dict[str, Any] | None) -> dict[str, Any]:
    return {name: told[name] for name in ("failing_test", "groups") if name in told} if told else {}


def _limits(job: Job) -> dict[str, Any]:
    """A case may take several times what the reference took for its slowest."""
    limits = job.limits
    if limits.call_cpu_s and job.tests.cases:
        call_cpu_s = max(limits.call_cpu_s, SLOWER * job.tests.cases.slowest_s)
        limits = dataclasses.replace(limits, call_cpu_s=call_cpu_s)
    return dataclasses.asdict(limits)


def _for_oracle(tests: Tests) -> bytes:
    body: dict[str, Any] = {
        "entry_point": tests.entry_point,
        "code": tests.code,
        "preamble": tests.preamble,
    }
    if tests.cases:
        body |= {"inputs": tests.cases.inputs, "expected": tests.cases.expected}
    return wire.dumps(body)


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
    elif stopped == "answered":
        reason, detail = "exit", "stopped answering before its tests were done"
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
