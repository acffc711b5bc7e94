"""Run programs in separate processes, isolated by the kernel. Needs neither root nor Docker."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from assay.errors import SandboxError
from assay.machine import usable_cores
from assay.sandbox import Capabilities, sandboxes
from assay.sandbox.host.fork_servers import PROBE, ForkServerSandbox, settings_for
from assay.sandbox.host.local import LocalServers, start_with
from assay.sandbox.host.tiers import TIERS, WATCHED, Tier
from assay.sandbox.host.worker import Worker, WorkerSettings
from assay.types import Job


class ProcessSandbox(ForkServerSandbox):
    """Keep fork servers on this machine, isolated by one of the tiers."""

    def __init__(self, workers: int, tier: str = "auto") -> None:
        self.tier, first, self._refused = _first_worker(tier)
        super().__init__(workers, first)
        self._limits = first.limits_by

    def capabilities(self) -> Capabilities:
        python = f"{platform.python_implementation()} {platform.python_version()}".lower()
        gaps, guarantees = self.tier.gaps, self.tier.guarantees
        if self._limits:
            guarantees = (*guarantees, f"memory and CPU time of the tree held by {self._limits}")
        else:
            gaps = (*gaps, *WATCHED)
        return Capabilities(
            "process", self.tier.name, python, guarantees, gaps, refused=self._refused
        )

    def _settings(self, job: Job) -> WorkerSettings:
        return _settings(self.tier, job)

    def _new_worker(self, settings: WorkerSettings) -> Worker:
        return Worker(settings, LocalServers(settings))


def _settings(tier: Tier, job: Job) -> WorkerSettings:
    return settings_for(job, tier.name, start_with(job.environment, tier.name))


def _first_worker(wanted: str) -> tuple[Tier, Worker, tuple[str, ...]]:
    """Return the strongest tier this machine allows, or only the requested one."""
    if wanted not in ("auto", *TIERS):
        raise SandboxError(f"sandbox tier '{wanted}': unknown. Choose auto, {', '.join(TIERS)}.")
    not_for_us: list[str] = []
    refusals: list[str] = []
    for tier in TIERS.values() if wanted == "auto" else [TIERS[wanted]]:
        if (tier.name == "root") != _is_full_root() and tier.name != "landlock":
            not_for_us.append(f"{tier.name}: {'not for root' if _is_full_root() else 'needs root'}")
            continue
        try:
            settings = _settings(tier, PROBE)
            return tier, Worker(settings, LocalServers(settings)), tuple(refusals)
        except SandboxError as error:
            refusals.append(f"{tier.name}: {error}")
    raise SandboxError(
        f"process sandbox: does not work here ({'; '.join(not_for_us + refusals)}). "
        "Run 'assay sandbox doctor' to see what it needs."
    )


def _is_full_root() -> bool:
    """Return whether this is root with other users to change to, not a namespace's only user."""
    mapped = Path("/proc/self/uid_map").read_text().splitlines()
    return os.geteuid() == 0 and any(int(line.split()[2]) > 1 << 20 for line in mapped)


@sandboxes.register("process")
def _open(workers: int, tier: str) -> ProcessSandbox:
    return ProcessSandbox(workers or usable_cores(), tier)
