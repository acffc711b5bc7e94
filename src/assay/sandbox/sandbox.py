"""Define what every kind of sandbox does: programs in, verdicts out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from assay.errors import UsageError
from assay.registry import Registry
from assay.types import Capabilities, Cases, Job, Verdict
from assay.work import PAUSE
from assay.work.dispatch import Item

C = TypeVar("C")
P = TypeVar("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Sandbox(Protocol):
    """Judge programs where they can do no harm."""

    def capabilities(self) -> Capabilities:
        """Return what the sandbox promises on this machine. It is part of every result."""
        ...

    def judge(self, jobs: Iterable[Job]) -> Iterator[Verdict]:
        """Yield one verdict per job, as each is reached, in any order.

        Jobs are taken when a worker is free, from other threads one at a time. So a lazy iterable
        is never read far ahead, and it may block until the next job exists. Closing the iterator
        kills what still runs. A failure of the harness is an ``invalid`` verdict.
        """
        ...

    def outputs(self, jobs: Iterable[Job]) -> Iterator[tuple[Verdict, Cases | None]]:
        """Yield each job's verdict and cases with the program's outputs, or None if it fails."""
        ...

    def run_stage(
        self,
        stage: Stage[C, P, R],
        items: Iterable[tuple[C, P] | None],
        answer: Callable[[Sequence[R]], None],
        count: int | None = None,
    ) -> None:
        """Run a stage on every item, where the sandbox's workers are, and return when all are done.

        An item is a context, which is large and common to many items, and a payload. Items are
        taken like the jobs of ``judge``. ``answer`` is called from any thread, in any order.
        ``count`` is the number of items, if it is known.
        """
        ...

    def close(self) -> None:
        """Release what is kept warm, and kill what still runs."""
        ...


class Stage(Protocol[C, P, R_co]):
    """Define work that is done next to a sandbox's workers, perhaps in other processes.

    The stage, its items and its answers are pickled then.
    """

    def run(
        self,
        sandbox: Sandbox,
        items: Iterator[Item[C, P] | None],
        answer: Callable[[int, Any], None],
    ) -> None:
        """Answer every item once, from any thread.

        Answer an item with None first if it has to wait for other items: another one can be taken
        in its place. Items may contain ``PAUSE``.
        """
        ...

    def give_up(self, context: C, payload: P, why: str) -> R_co:
        """Return the answer for an item that could not be worked on: a failure of the harness."""
        ...


# A kind is opened with the number of workers, the tier, and what ``--python`` says.
sandboxes: Registry[Callable[[int, str, str], Sandbox]] = Registry(
    "sandbox", "assay.sandbox.kinds", "assay.sandbox"
)
# Kinds that are written with a place: ``remote:URL``.
remote_sandboxes: Registry[Callable[[str, int, str, str], Sandbox]] = Registry(
    "sandbox", "assay.sandbox.kinds", plug_ins=False
)


def open_sandbox(kind: str, workers: int, tier: str = "auto", python: str = "") -> Sandbox:
    """Open a sandbox on this machine, or elsewhere. Raise SandboxError that says what it lacks.

    ``kind`` is a name, or ``remote:URL``. ``tier`` requests one strength of isolation, and
    ``python`` the version or path of the Python that judges. Nothing else is ever used instead.
    """
    if workers < 0:
        raise UsageError(f"workers {workers}: must be 0 (one per core) or more. Change it.")
    name, _, place = kind.partition(":")
    if place:
        return remote_sandboxes.get(name)(place, workers, tier, python)
    return sandboxes.get(kind)(workers, tier, python)


def run_here(
    sandbox: Sandbox,
    stage: Stage[C, P, R],
    items: Iterable[tuple[C, P] | None],
    answer: Callable[[Sequence[R]], None],
    count: int | None = None,  # noqa: ARG001 - as in Sandbox.run_stage
) -> None:
    """Run a stage in this process. As a method, it is ``run_stage`` of a sandbox without judges."""

    def pass_on(_tag: int, result: R | None) -> None:
        if result is not None:
            answer((result,))

    tagged = (item if item is PAUSE else Item(tag, *item) for tag, item in enumerate(items))
    stage.run(sandbox, tagged, pass_on)
