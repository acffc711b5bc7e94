"""Find out what this machine offers a sandbox.

For all kinds: which work, what they promise, how fast they are. For processes: every tier.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from assay.errors import SandboxError
from assay.sandbox import open_sandbox, sandboxes
from assay.sandbox.environments.interpreters import choose
from assay.sandbox.host.tiers import TIERS
from assay.sandbox.inside.isolation import landlock
from assay.sandbox.kinds.process import ProcessSandbox
from assay.types import Job, Program, Tests
from assay.work.machine import usable_cores

VERSIONS = {"cgroup": "version 1", "cgroup2": "version 2"}
# Small programs that pass.
PROGRAM = "def f(numbers):\n    return sorted(set(numbers))[-{n}:]\n"
TESTS = "assert f([3, 1, 2, 3]) == [1, 2, 3][-{n}:]\nassert f([]) == []\n"
WARM_UP, MEASURED = 20, 300


@dataclass(frozen=True, slots=True)
class TierReport:
    """One tier on this machine. ``refusal`` is empty if it works."""

    name: str
    refusal: str
    guarantees: tuple[str, ...]
    gaps: tuple[str, ...]
    remedy: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The machine. ``chosen`` is the tier that ``auto`` uses, or empty if none works."""

    features: dict[str, str]
    tiers: tuple[TierReport, ...]
    chosen: str


def diagnose(python: str = "") -> Diagnosis:
    """Try every tier with the Python that judges, and return the results."""
    interpreter = choose(python)
    tiers = tuple(_examine(name, python) for name in TIERS)
    chosen = next((tier.name for tier in tiers if not tier.refusal), "")
    features = _features() | {"Python": f"{interpreter.version}, {interpreter.path}"}
    return Diagnosis(features, tiers, chosen)


def _examine(name: str, python: str) -> TierReport:
    tier = TIERS[name]
    refusal, guarantees, gaps = "", tier.guarantees, tier.gaps
    try:
        sandbox = ProcessSandbox(1, name, python=python)
    except SandboxError as error:
        refusal = str(error).partition("(")[2].rpartition(")")[0] or str(error)
    else:
        about = sandbox.capabilities()
        guarantees, gaps = about.guarantees, about.gaps
        sandbox.close()
    return TierReport(name, refusal, guarantees, gaps, tier.remedy)


def _features() -> dict[str, str]:
    version = landlock.version()
    return {
        "kernel": os.uname().release,
        "user": "root" if os.geteuid() == 0 else f"uid {os.geteuid()}",
        "user namespaces": _setting("/proc/sys/user/max_user_namespaces"),
        "Landlock": f"version {version}" if version else "no",
        "cgroups": _cgroups(),
    }


def _cgroups() -> str:
    """Return the versions that are mounted, and how an ordinary user gets one."""
    kinds = {kind for _, kind in _mounts()} & VERSIONS.keys()
    versions = " and ".join(VERSIONS[kind] for kind in sorted(kinds)) or "none"
    if not kinds or os.geteuid() == 0:
        return versions
    return (
        f"{versions}; an ordinary user needs a delegated one: "
        "systemd-run --user --scope -p Delegate=yes assay ..."
    )


def _mounts() -> list[list[str]]:
    """Return the mount point and the type of each file system."""
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return []
    return [line.split()[1:3] for line in lines]


def _setting(path: str) -> str:
    try:
        return f"at most {Path(path).read_text().strip()}"
    except OSError:
        return "unknown"


@dataclass(frozen=True, slots=True)
class KindReport:
    """One kind of sandbox. ``refusal`` is empty if it works."""

    kind: str
    refusal: str
    tier: str = ""
    python: str = ""
    guarantees: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    samples_per_second: float | None = None


def overview(workers: int = 0) -> Iterator[KindReport]:
    """Try every kind with small programs that pass, and yield the results."""
    for kind in sandboxes.names():
        yield _measure(kind, workers or usable_cores())


def _measure(kind: str, workers: int) -> KindReport:
    try:
        sandbox = open_sandbox(kind, workers)
    except SandboxError as error:
        return KindReport(kind, str(error))
    try:
        about = sandbox.capabilities()
        list(sandbox.judge(_jobs(WARM_UP)))
        started = time.monotonic()
        passed = sum(verdict.status == "pass" for verdict in sandbox.judge(_jobs(MEASURED)))
        rate = MEASURED / (time.monotonic() - started)
    finally:
        sandbox.close()
    refusal = (
        "" if passed == MEASURED else f"{MEASURED - passed} of {MEASURED} correct programs fail"
    )
    return KindReport(
        kind, refusal, about.tier, about.python, about.guarantees, about.gaps, round(rate, 1)
    )


def _jobs(count: int) -> list[Job]:
    return [
        Job(
            "t", number, Program(PROGRAM.format(n=1 + number % 3), ""),
            Tests("f", TESTS.format(n=1 + number % 3), integrity="separated"),
        )
        for number in range(count)
    ]  # fmt: skip
