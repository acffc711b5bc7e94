"""Show all kinds of sandbox on this machine: which work, what they promise, how fast they are."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from assay.errors import SandboxError
from assay.sandbox import open_sandbox, sandboxes
from assay.types import Job, Program, Tests
from assay.work.machine import usable_cores

PROGRAM = "def f(numbers):\n    return sorted(set(numbers))[-{n}:]\n"
TESTS = "assert f([3, 1, 2, 3]) == [1, 2, 3][-{n}:]\nassert f([]) == []\n"
WARM_UP, MEASURED = 20, 300


@dataclass(frozen=True, slots=True)
class KindReport:
    """Describe one kind. ``refusal`` is empty if it works."""

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
        yield _examine(kind, workers or usable_cores())


def _examine(kind: str, workers: int) -> KindReport:
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
