"""Mark results: defects of a result, and properties of its machine, origin or benchmark."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from assay.errors import RunError
from assay.protocol import compute_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from assay.runs.result import Result
    from assay.types import Completion

MarkName = Literal[
    "partial", "invalid", "unverified-device", "sequential", "no-gpu", "served", "recorded",
    "other-judge", "unrecorded", "batch-dependent", "shared-tests",
]  # fmt: skip
MarkKind = Literal["defect", "property"]
SERVED = "openai"  # the engine of models behind a server
ADDED_IN_ROUNDS = "samples were added until a comparison decided, which biases the score"
WITHOUT_GPU = "completions were generated without a GPU of this machine"
GPU_USE = re.compile(f"(all|some) {WITHOUT_GPU}")


@dataclass(frozen=True, slots=True)
class Mark:
    """A kind of remark on a result. A ``defect`` is of the result, a ``property`` is around it."""

    kind: MarkKind
    meaning: str  # one sentence
    blocks: bool = True  # whether a result with it is not publishable


# In the order in which they are listed: defects first.
MARKS: dict[MarkName, Mark] = {
    "partial": Mark("defect", "Not all problems and samples of the benchmark were judged."),
    "invalid": Mark("defect", "Samples that could not be judged are left out of the score."),
    "unverified-device": Mark("defect", "The parity gate did not check this use of the device."),
    "sequential": Mark("defect", f"{ADDED_IN_ROUNDS[0].upper()}{ADDED_IN_ROUNDS[1:]}."),
    "no-gpu": Mark("property", "Completions were generated without a GPU of this machine."),
    "served": Mark(
        "property",
        "A server generated the completions. Its weights and device cannot be verified.",
    ),
    "recorded": Mark("property", "The completions were recorded elsewhere."),
    "other-judge": Mark("property", "Another harness judged the programs."),
    "unrecorded": Mark(
        "property", "An earlier version of assay did not record the reasons."
    ),
    "batch-dependent": Mark(
        "property", "A text depends on the others in its batch, so repeating it may change it.",
        blocks=False,
    ),
    "shared-tests": Mark(
        "property", "Programs share an interpreter with their tests, so they could forge verdicts.",
        blocks=False,
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Marking:
    """A mark of one result, and what is known about it there, as a phrase."""

    name: MarkName
    detail: str

    @property
    def mark(self) -> Mark:
        return MARKS[self.name]


def list_marks(result: Result) -> list[Marking]:
    """Return the marks of a result with their details, defects first.

    They follow from the other fields, so that results of earlier versions have them too. A mark
    with several details is listed several times.
    """
    marks = [*_coverage(result), *_origin(result), *_verdicts(result)]
    if not result.publishable and not any(one.mark.blocks for one in marks):
        reasons = result.not_publishable or ("not recorded why",)
        marks += [Marking("unrecorded", reason) for reason in reasons]
    order = list(MARKS)
    return sorted(marks, key=lambda one: order.index(one.name))


def with_publication(result: Result, completions: Iterable[Completion]) -> Result:
    """Return a new result with what its completions and marks say about a publication."""
    used_gpu = {completion.used_gpu for completion in completions}
    if used_gpu != {True} and not result.protocol.origin:
        amount = "some" if True in used_gpu else "all"
        result = replace(
            result, not_publishable=(*result.not_publishable, f"{amount} {WITHOUT_GPU}")
        )
    obstacles = list_obstacles(result)
    return replace(result, publishable=not obstacles, not_publishable=tuple(obstacles))


def list_obstacles(result: Result) -> list[str]:
    """Return why a result is not publishable, from its other fields."""
    marks = list_marks(replace(result, publishable=True))
    return [one.detail for one in marks if one.mark.blocks]


def require_publishable(results: Iterable[Result]) -> None:
    """Raise RunError if a result is not publishable."""
    obstacles = dict.fromkeys(reason for result in results for reason in result.not_publishable)
    if obstacles:
        raise RunError(
            f"the result is not publishable: {'; '.join(obstacles)}. "
            "Evaluate again with --fresh --publishable."
        )


def _coverage(result: Result) -> Iterator[Marking]:
    coverage = result.coverage
    if coverage is None:  # by an earlier version
        return
    if not coverage.whole:
        counts = f"{coverage.selected_problems} of {coverage.benchmark_problems}"
        yield Marking("partial", f"{counts} problems were selected")
    if coverage.judged_problems < coverage.selected_problems:
        counts = f"{coverage.judged_problems} of {coverage.selected_problems}"
        yield Marking("partial", f"{counts} problems were judged")
    if missing := coverage.samples - coverage.judged_samples:
        yield Marking("partial", f"{missing} of {coverage.samples} samples have no verdict")


def _origin(result: Result) -> Iterator[Marking]:
    """Yield where the completions are from, and whether the device was checked."""
    if result.protocol.origin:
        yield Marking("recorded", "the completions were recorded elsewhere")
        return
    if result.model_identity and result.model_identity.engine == SERVED:
        yield Marking("served", "the weights and the device of the server cannot be verified")
        return
    environments = (result.environment, *result.continued_in)
    gates = [one.parity_gate.state if one.parity_gate else "" for one in environments]
    if without := next(filter(GPU_USE.fullmatch, result.not_publishable), ""):
        yield Marking("no-gpu", without)
    elif result.coverage is not None and any(state != "passed" for state in gates):
        yield Marking("unverified-device", "the parity gate was switched off")
    asking = result.protocol.asking
    if options := compute_options(asking.engine_options if asking else ()):
        names = ", ".join(options)
        yield Marking(
            "unverified-device", f"the parity gate does not cover --engine-option {names}"
        )
    if any(one.engine.get("batch_invariant") is False for one in environments):
        yield Marking("batch-dependent", "a text depends on the others in its batch")


def _verdicts(result: Result) -> Iterator[Marking]:
    scores = result.results
    if scores.invalid:
        counts = f"{scores.invalid} of {scores.samples} samples"
        yield Marking("invalid", f"{counts} could not be judged and are left out")
    if result.protocol.judge:
        yield Marking("other-judge", f"the programs were judged by {result.protocol.judge}")
    if result.sequential or ADDED_IN_ROUNDS in result.not_publishable:
        yield Marking("sequential", ADDED_IN_ROUNDS)
    if shared := scores.integrity.get("shared", 0):
        total = shared + scores.integrity.get("separated", 0)
        yield Marking("shared-tests", f"{shared} of {total} verdicts could be forged by a program")
