"""Share the code of all sandboxes that keep fork servers warm, wherever these run."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import secrets
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard, TypeVar

from assay import types
from assay.data import text_cases
from assay.errors import SandboxError
from assay.protocol import tests_digest
from assay.sandbox import run_here
from assay.sandbox.host.report import BrokeWorker, Outcome, SandboxFailure, WorkerReport
from assay.sandbox.host.verdicts import verdict_of, with_outputs
from assay.sandbox.host.warm import WarmWorkers
from assay.sandbox.host.worker import (
    BusyTestsError,
    LateError,
    Start,
    Worker,
    WorkerLostError,
    WorkerSettings,
)
from assay.sandbox.inside.isolation.machine import Machine
from assay.sandbox.inside.judging import wire
from assay.sandbox.inside.judging.messages import Task, TestBody, Texts
from assay.sandbox.inside.judging.wire import Latest
from assay.sandbox.inside.serving.messages import (
    SCRIPTS,
    Limits,
    Order,
    Settings,
    WorkerLimits,
    case_limits,
)
from assay.types import Cases, Job, Program, Tests, Verdict
from assay.work import RWLock

ATTEMPTS = 3
PAUSE_S = 0.2  # before an attempt after one that failed on our side
PATIENCE = 4  # the fork server's own, in wall limits
GRACE_S = 20.0
SLOWER = 4
STARVED = 0.1  # of the wall limit that others must have used
SHARE_S = 0.3  # to measure a process's share of a CPU; 10 turns on a machine with 10 busy processes
TOO_BUSY = "the machine is too busy to run it within its limits"
PRESSURE = {"cpu": TOO_BUSY, "memory": "the machine has no memory left to run it"}
PROBE = Job("", 0, Program("", ""), Tests("", "", integrity="separated"))
DIGESTS_ROOM = 64 << 20  # bytes of tests that are held for their digests
CALL_SIZE = 1 << 10
LEAST_SIZE = DIGESTS_ROOM // 1000  # that tests count for: at most 1,000 are held
CONTROL = Job("", 0, Program("def f(x):\n    return x + 1\n", ""), Tests("f", "assert f(1) == 2"))
SCRIPT_CONTROL = Job(
    "",
    0,
    Program("print(int(input()) + 1)\n", ""),
    Tests("", "", integrity="separated", texts=text_cases.pack([("1", "2")])),
)
C = TypeVar("C")
P = TypeVar("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class SharedSandboxSettings:
    """The common settings of sandboxes that judge the same jobs in several processes."""

    seed: str  # for jobs without one of their own
    alone: RWLock | None = None
    dozing: int = 0  # programs that may give up their slot; 0: as many as pay


class ForkServerSandbox(WarmWorkers[Worker]):
    """A sandbox with one fork server per worker, which stays warm between calls of ``judge``.

    A sandbox kind inherits from this class. It provides a worker's settings for a job, and starts
    it.
    """

    def __init__(
        self, workers: int, first: Worker | None, shared: SharedSandboxSettings | None = None
    ) -> None:
        shared = shared or SharedSandboxSettings(secrets.token_hex(16))
        super().__init__(workers, first, shared.alone)
        self._seed = shared.seed
        # A dozing program keeps its process and its imports, so their number is limited.
        self._dozing = shared.dozing or most_dozing(workers)
        # By the tests' identity. They are held too, so that their identity stays theirs.
        self._digests: Latest[int, tuple[Tests, str]] = Latest(DIGESTS_ROOM)
        self._host_kills = _host_oom_kills()  # when last asked
        self._machine = Machine()

    def capabilities(self) -> types.Capabilities:
        raise NotImplementedError

    def _settings(self, job: Job) -> WorkerSettings:
        """Return the settings that a worker cannot change later.

        Raise SandboxError if there are none.
        """
        raise NotImplementedError

    def _new_worker(self, settings: WorkerSettings) -> Worker:
        raise NotImplementedError

    def judge(self, jobs: Iterable[Job]) -> Iterator[Verdict]:
        with contextlib.closing(self._reports(jobs)) as reports:
            for job, outcome in reports:
                yield verdict_of(job, outcome)

    def outputs(self, jobs: Iterable[Job]) -> Iterator[tuple[Verdict, Cases | None]]:
        with contextlib.closing(self._reports(jobs)) as reports:
            for job, outcome in reports:
                result = outcome.oracle_result if isinstance(outcome, WorkerReport) else None
                yield verdict_of(job, outcome), with_outputs(job.tests.cases, result)

    run_stage = run_here

    def _reports(self, jobs: Iterable[Job]) -> Generator[tuple[Job, Outcome], None, None]:
        return self._stream(jobs, self._run, self._dozing)

    def _run(self, job: Job, doze: Callable[[], None]) -> tuple[Job, Outcome]:
        with self._turn(job, doze):
            report = self._report(job, doze)
        lost = 0
        for attempt in range(1, ATTEMPTS):
            if not report.doubtful:
                break
            time.sleep(PAUSE_S * attempt)
            lost += _is_lost(report)
            if attempt == 1 and _is_lost(report) and not report.killed_by_host:
                # Something ended its worker. To be alone, it would have to wait for all others.
                with self._turn(job, doze):
                    report = self._report(job, doze)
                continue
            if lost > 1 and _is_late(report):
                # Alone, it would keep all others waiting for as long again.
                with self._alone.shared():
                    if self._control_passes(job):
                        return job, BrokeWorker(report.why)
                break
            # The machine or another program may be the cause, so run it again, alone.
            with self._alone.exclusive():
                others_s = self._others_s()
                report = self._report(job, lambda: None)
                others_s = self._others_s() - others_s
                if isinstance(report, WorkerReport) and _is_own_wait(
                    report, _run_limits(job), others_s
                ):
                    report = dataclasses.replace(report, pressure="")
                if lost and _is_lost(report) and self._control_passes(job):
                    return job, BrokeWorker(report.why)
            if report.killed_by_host:
                break  # it ran alone, within its limits, so it is the cause itself
        if report.pressure:
            return job, SandboxFailure(PRESSURE[report.pressure])
        return job, report

    def _digest(self, tests: Tests) -> str:
        """Return the digest of tests, which many programs share."""
        known = self._digests.items.get(id(tests))
        if known is None:
            known = tests, tests_digest(tests)
            size = max(LEAST_SIZE, estimate_size(tests))
            with self._lock:
                self._digests.add(id(tests), known, size)
        return known[1]

    def _others_s(self) -> float:
        """Return the CPU seconds of all processes of the machine except the sandbox's."""
        with self._lock:
            workers = list(self._alive)
        return self._machine.busy_s() - sum(worker.cpu_s() for worker in workers)

    def _control_passes(self, job: Job) -> bool:
        """Return whether a worker like that of a job judges an honest program correctly."""
        honest = SCRIPT_CONTROL if job.tests.is_script else CONTROL
        tests = dataclasses.replace(honest.tests, integrity=job.tests.integrity)
        control = dataclasses.replace(job, program=honest.program, tests=tests)
        return verdict_of(control, self._report(control, lambda: None)).status == "pass"

    def _report(self, job: Job, doze: Callable[[], None]) -> Outcome:
        """Return the outcome of running a program once."""
        tests = job.tests
        order = Order(task_of(job), _limits(job))
        timeout_s = _longest_s(job) * PATIENCE + GRACE_S
        kills = self._host_kills
        # A missing environment is not a failure of this one program, so it ends the whole run.
        settings = self._settings(job)
        try:
            worker = self._take(
                lambda worker: worker.settings == settings, lambda: self._new_worker(settings)
            )
        except SandboxError as error:
            return SandboxFailure(str(error))
        try:
            if tests.integrity == "shared":
                report = worker.judge(order, timeout_s, doze)
            else:
                seed = f"{job.seed or self._seed} {job.task_id}"
                body = functools.partial(for_oracle, tests)
                key = self._digest(tests)
                report = worker.judge_apart(order, key, seed, body, timeout_s, doze)
        except BusyTestsError as error:
            self._drop(worker)
            return BrokeWorker(str(error), "timeout")
        except (WorkerLostError, SandboxError) as error:
            self._drop(worker)
            late = isinstance(error, LateError)
            return SandboxFailure(f"the fork server was lost: {error}", lost=True, late=late)
        self._give_back(worker)
        if isinstance(report, SandboxFailure):
            return report
        killed = report.exit_code == -signal.SIGKILL and report.stopped is None
        if killed and not report.out_of_memory:
            # Too expensive to read for every program, so the earlier count may be older.
            self._host_kills = _host_oom_kills()
            return dataclasses.replace(report, killed_by_host=self._host_kills > kills)
        return report


def estimate_size(tests: Tests) -> int:
    """Return about how many bytes tests take, as fast as possible."""
    packed = sum(map(len, tests.texts.packed)) if tests.texts else 0
    calls = sum(map(len, tests.cases.inputs.values())) if tests.cases else 0
    return len(tests.code) + len(tests.preamble) + packed + CALL_SIZE * calls


def _longest_s(job: Job) -> float:
    """Return the seconds that a program can take on a machine that is not busy."""
    limits = job.limits
    # Cases can wait for as long as one case may, together.
    return limits.cpu_s + 2 * limits.wall_s if job.tests.is_script else limits.wall_s


def most_dozing(workers: int) -> int:
    """Return how many programs may sleep at a time without holding up others."""
    return 3 + workers // 2


def _run_limits(job: Job) -> Limits:
    """Return the limits of one run of a program, which may be one case of many."""
    limits = _limits(job)
    return case_limits(limits) if job.tests.is_script else limits


def _is_own_wait(report: WorkerReport, limits: Limits, others_s: float) -> bool:
    """Return whether a program that ran alone got all it needed to reach its CPU limit.

    Its own waiting for a CPU proves nothing: a program that sleeps often also waits after each
    sleep. A program that was ended before the last extension was awake for as long as it may be.
    """
    return report.pressure == "cpu" and (
        others_s < STARVED * limits.wall_s
        or report.wall_s < PATIENCE * limits.wall_s
        or cpu_share() * report.wall_s >= limits.cpu_s
    )


def cpu_share() -> float:
    """Return the part of a CPU that a process gets now if it never waits for anything else."""
    started, used_s = time.monotonic(), time.thread_time()
    while (elapsed_s := time.monotonic() - started) < SHARE_S:
        pass
    return (time.thread_time() - used_s) / elapsed_s


def _is_lost(report: Outcome) -> TypeGuard[SandboxFailure]:
    return isinstance(report, SandboxFailure) and report.lost


def _is_late(report: Outcome) -> TypeGuard[SandboxFailure]:
    return isinstance(report, SandboxFailure) and report.late


def settings_for(job: Job, tier: str, start: Start) -> WorkerSettings:
    """Return the settings of a worker for a job. Other limits can change from job to job."""
    limits = job.limits
    inside = Settings(
        tier,
        SCRIPTS if job.tests.is_script else job.tests.integrity,
        WorkerLimits(limits.memory_mb, limits.processes, limits.files_mb),
        job.imports,
        start.allowed,
        start.variables,
        start.private,
        job.tests.preamble if job.tests.is_script else "",
    )
    return WorkerSettings(inside, start.interpreter, start.start_s)


def _host_oom_kills() -> int:
    """Return how many processes the kernel has killed for lack of memory since it started."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def _limits(job: Job) -> Limits:
    """Return the limits of a job. A case may take several times the reference's slowest time."""
    limits = job.limits
    call_cpu_s = limits.call_cpu_s
    if call_cpu_s and job.tests.cases:
        call_cpu_s = max(call_cpu_s, SLOWER * job.tests.cases.slowest_s)
    return Limits(
        limits.cpu_s,
        call_cpu_s,
        limits.wall_s,
        limits.memory_mb,
        limits.processes,
        limits.output_bytes,
    )


def task_of(job: Job) -> Task:
    """Return what the process of a program learns about a job. Separated tests are left out."""
    tests = job.tests
    code = tests.code if tests.integrity == "shared" else tests.adapter
    abridged = tests.cases is not None or tests.texts is not None
    return Task(tests.preamble, job.program.code, code, tests.called, abridged)


def for_oracle(tests: Tests) -> bytes:
    body = TestBody(tests.entry_point, tests.code, tests.preamble)
    if tests.cases:
        body = body._replace(inputs=tests.cases.inputs, expected=tests.cases.expected)
    if texts := tests.texts:
        pairs = tuple(text_cases.unpack(texts))
        body = body._replace(texts=Texts(texts.style, texts.comparison, texts.run_all, pairs))
    return wire.dumps(body)
