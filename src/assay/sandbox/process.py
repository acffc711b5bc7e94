"""Programs in processes of their own, isolated by the kernel; needs neither root nor Docker."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import secrets
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import SandboxError
from assay.sandbox import _pool, sandboxes
from assay.types import Capabilities, Job, Limits, Program, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CHILD = Path(__file__).with_name("_child.py")
# No site packages: what a program may import does not depend on what the user has installed.
# A fixed hash seed: the order of a set must not decide a verdict.
INTERPRETER = (sys.executable, "-P", "-S", "-s", "-B")
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
GRACE_S = 20.0  # for start and clean-up on a busy machine
ATTEMPTS = 2
GUARANTEES = (
    "no network",
    "no host files but the system's and Python's, read-only",
    "private /tmp",
    "own process tree, killed at the end",
    "no privileges",
    "CPU, wall, memory, process, file and output limits",
)


class ProcessSandbox:
    """A fresh interpreter in fresh namespaces for every sample."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False
        probe = self._attempt(Job("probe", 0, "", Program("", "probe"), "", Limits()))
        if probe.status != "pass":
            raise SandboxError(
                f"this machine does not allow the process sandbox ({probe.detail}): "
                "it needs Linux 5.12 or later with user namespaces, which containers often forbid"
            )

    def capabilities(self) -> Capabilities:
        python = f"{platform.python_implementation()} {platform.python_version()}".lower()
        return Capabilities("process", "namespaces", python, GUARANTEES)

    def judge(self, jobs: Iterable[Job]) -> Iterator[Verdict]:
        self._closed = False
        try:
            yield from _pool.stream(jobs, self._judge_one, self._workers)
        finally:
            self._kill_running()

    def _judge_one(self, job: Job) -> Verdict:
        for _ in range(ATTEMPTS):
            verdict = self._attempt(job)
            if verdict.status != "invalid":
                break
        return verdict

    def _attempt(self, job: Job) -> Verdict:
        message = {
            "token": secrets.token_hex(16),
            "harness": os.getpid(),
            "preamble": job.preamble,
            "program": job.program.code,
            "tests": job.tests,
            "limits": dataclasses.asdict(job.limits),
        }
        try:
            report = self._run(json.dumps(message).encode(), job.limits.wall_s + GRACE_S)
        except (OSError, ValueError) as error:
            report = {"sandbox_error": str(error)}
        return _verdict(job, report)

    def _run(self, message: bytes, timeout: float) -> dict[str, Any]:
        with self._lock:
            if self._closed:
                return {"sandbox_error": "stopped"}
            process = subprocess.Popen(
                [*INTERPRETER, str(CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=ENVIRONMENT,
                cwd="/",
                start_new_session=True,
            )
            self._running.add(process)
        try:
            out, err = process.communicate(message, timeout=timeout)
        except subprocess.TimeoutExpired:
            return {"sandbox_error": "the sandbox process gave no report in time"}
        finally:
            process.kill()
            process.wait()
            with self._lock:
                self._running.discard(process)
        if not out:
            lines = err.decode(errors="replace").strip().splitlines()
            return {"sandbox_error": lines[-1] if lines else "the sandbox process died"}
        report: dict[str, Any] = json.loads(out)
        return report

    def _kill_running(self) -> None:
        with self._lock:
            self._closed = True
            for process in self._running:
                process.kill()


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
    told = report["result"] or _untold(report, job.limits)
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
    code, output = report["exit_code"], report["output_tail"].strip()
    if not report["in_time"]:
        reason, detail = "timeout", f"still running after {limits.wall_s:g} s"
    elif -code in (signal.SIGXCPU, signal.SIGKILL) and report["cpu_s"] >= limits.cpu_s:
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
def _open(workers: int) -> ProcessSandbox:
    return ProcessSandbox(workers or os.cpu_count() or 1)
