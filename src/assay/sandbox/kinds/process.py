"""Run programs in separate processes, isolated by the kernel. Needs neither root nor Docker."""

from __future__ import annotations

import dataclasses
import os
import secrets
from pathlib import Path

from assay.errors import SandboxError
from assay.sandbox import Capabilities, Sandbox, sandboxes
from assay.sandbox.environments import interpreters
from assay.sandbox.environments.interpreters import Interpreter
from assay.sandbox.host.fork_servers import (
    PROBE,
    ForkServerSandbox,
    SharedSandboxSettings,
    settings_for,
)
from assay.sandbox.host.local import LocalServers, start_with
from assay.sandbox.host.tiers import TIERS, WATCHED, Tier
from assay.sandbox.host.worker import Worker, WorkerSettings
from assay.sandbox.judges.processes import LEAST_CORES, JudgeProcesses
from assay.types import Job
from assay.work import open_file_lock
from assay.work.machine import usable_cores

WORKERS_PER_JUDGE = 2


class TierSandbox(ForkServerSandbox):
    """Fork servers on this machine, isolated by a tier that is known to work here."""

    def __init__(
        self,
        workers: int,
        tier: Tier,
        python: Interpreter,
        first: Worker | None = None,
        shared: SharedSandboxSettings | None = None,
    ) -> None:
        self.tier = tier
        self.python = python
        super().__init__(workers, first, shared)

    def capabilities(self) -> Capabilities:
        tier, python = self.tier, self.python
        return Capabilities(
            "process", tier.name, python.name, tier.guarantees, tier.gaps, interpreter=python.path
        )

    def _settings(self, job: Job) -> WorkerSettings:
        return _settings(self.tier, job, self.python)

    def _new_worker(self, settings: WorkerSettings) -> Worker:
        return Worker(settings, LocalServers(settings))


class ProcessSandbox(TierSandbox):
    """Fork servers of a tier that is chosen here, with what it promises."""

    def __init__(
        self,
        workers: int,
        tier: str = "auto",
        shared: SharedSandboxSettings | None = None,
        python: str = "",
    ) -> None:
        interpreter = interpreters.choose(python)
        chosen, first, self._refused = _first_worker(tier, interpreter)
        super().__init__(workers, chosen, interpreter, first, shared)
        self._limits = first.limits_by

    def capabilities(self) -> Capabilities:
        gaps, guarantees = self.tier.gaps, self.tier.guarantees
        if self._limits:
            guarantees = (
                *guarantees,
                f"memory and CPU time of all processes of a program limited by {self._limits}",
            )
        else:
            gaps = (*gaps, *WATCHED)
        return dataclasses.replace(
            super().capabilities(), guarantees=guarantees, gaps=gaps, refused=self._refused
        )


def _settings(tier: Tier, job: Job, python: Interpreter) -> WorkerSettings:
    return settings_for(job, tier.name, start_with(job.environment, tier.name, python))


def _first_worker(wanted: str, python: Interpreter) -> tuple[Tier, Worker, tuple[str, ...]]:
    """Return the strongest tier this machine allows, or only the requested one."""
    if wanted not in ("auto", *TIERS):
        raise SandboxError(f"sandbox tier '{wanted}': unknown. Choose auto, {', '.join(TIERS)}.")
    not_for_us: list[str] = []
    refusals: list[str] = []
    for tier in TIERS.values() if wanted == "auto" else [TIERS[wanted]]:
        if (tier.name == "root") != _is_full_root() and tier.name != "landlock":
            why = "is for ordinary users, not root" if _is_full_root() else "needs root"
            not_for_us.append(f"tier {tier.name} {why}")
            continue
        try:
            settings = _settings(tier, PROBE, python)
            return tier, Worker(settings, LocalServers(settings)), tuple(refusals)
        except SandboxError as error:
            refusals.append(f"tier {tier.name}: {error}")
    raise SandboxError(
        f"process sandbox: does not work here ({'; '.join(not_for_us + refusals)}). "
        "Run 'assay sandbox doctor' to see what it needs."
    )


def _is_full_root() -> bool:
    """Return whether this is root with other users to change to, not a namespace's only user."""
    mapped = Path("/proc/self/uid_map").read_text().splitlines()
    return os.geteuid() == 0 and any(int(line.split()[2]) > 1 << 20 for line in mapped)


def count_judges(workers: int, cores: int) -> int:
    """Return how many judge processes share the workers; 0: this process judges by itself.

    One interpreter keeps up with some four workers. Two per process leave room for extraction. On
    2 cores, processes would only take time from the workers. On many cores that all have a worker,
    each gets its own process, so that all that a worker does stays on its core: 2,640 programs
    per second on 16 cores, and 2,470 with 8 processes.
    """
    if workers >= cores >= LEAST_CORES:
        return cores
    judges = min(-(-workers // WORKERS_PER_JUDGE), cores // 2)
    return judges if judges > 1 else 0


@sandboxes.register("process")
def _open(workers: int, tier: str, python: str = "") -> Sandbox:
    cores = usable_cores()
    workers = workers or cores
    judges = count_judges(workers, cores)
    if judges:
        return open_judges(workers, tier, judges, python)
    return ProcessSandbox(workers, tier, python=python)


def open_judges(workers: int, tier: str, judges: int, python: str = "") -> JudgeProcesses:
    """Open a sandbox whose workers are shared by judge processes."""
    alone, seed = open_file_lock(), secrets.token_hex(16)
    here = ProcessSandbox(workers, tier, SharedSandboxSettings(seed, alone), python)
    return JudgeProcesses(here, here.tier.name, here.python, seed, alone, workers, judges)
