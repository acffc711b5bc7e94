"""What every kind of sandbox gives: programs in, verdicts out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from assay.registry import Registry
from assay.types import Capabilities, Cases, Job, Verdict


class Sandbox(Protocol):
    """Judges programs where they can do no harm."""

    def capabilities(self) -> Capabilities:
        """What it promises on this machine; part of every result."""
        ...

    def judge(self, jobs: Iterable[Job]) -> Iterator[Verdict]:
        """One verdict per job, as each is reached, in any order.

        Jobs are taken when a worker is free, from the workers' threads one at a time, so a lazy
        iterable is never read far ahead and may block until the next job exists. Closing the
        iterator kills what still runs. What goes wrong on our side is an ``invalid`` verdict.
        """
        ...

    def outputs(self, jobs: Iterable[Job]) -> Iterator[tuple[Verdict, Cases | None]]:
        """The cases of each job with what its program returns for them, unless it fails."""
        ...

    def close(self) -> None:
        """Give back what is kept warm; what still runs is killed."""
        ...


sandboxes: Registry[Callable[[int, str], Sandbox]] = Registry(
    "sandbox", "assay.sandbox.kinds", "assay.sandbox"
)


def open_sandbox(kind: str, workers: int, tier: str = "auto") -> Sandbox:
    """A sandbox that works on this machine, or SandboxError saying what it lacks.

    ``tier`` asks for one strength of isolation; a weaker one is never taken in its place.
    """
    return sandboxes.get(kind)(workers, tier)
