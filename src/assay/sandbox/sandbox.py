"""Define what every kind of sandbox does: programs in, verdicts out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from assay.registry import Registry
from assay.types import Capabilities, Cases, Job, Verdict


class Sandbox(Protocol):
    """Judge programs where they can do no harm."""

    def capabilities(self) -> Capabilities:
        """Return what the sandbox promises on this machine. It is part of every result."""
        ...

    def judge(self, jobs: Iterable[Job]) -> Iterator[Verdict]:
        """Yield one verdict per job, as each is reached, in any order.

        Jobs are taken when a worker is free, from the workers' threads one at a time. So a lazy
        iterable is never read far ahead, and it may block until the next job exists. Closing the
        iterator kills what still runs. A failure of the harness is an ``invalid`` verdict.
        """
        ...

    def outputs(self, jobs: Iterable[Job]) -> Iterator[tuple[Verdict, Cases | None]]:
        """Yield each job's verdict and cases with the program's outputs, or None if it fails."""
        ...

    def close(self) -> None:
        """Release what is kept warm, and kill what still runs."""
        ...


sandboxes: Registry[Callable[[int, str], Sandbox]] = Registry(
    "sandbox", "assay.sandbox.kinds", "assay.sandbox"
)


def open_sandbox(kind: str, workers: int, tier: str = "auto") -> Sandbox:
    """Open a sandbox on this machine. Raise SandboxError that says what it lacks.

    ``tier`` requests one strength of isolation. A weaker one is never used instead.
    """
    return sandboxes.get(kind)(workers, tier)
