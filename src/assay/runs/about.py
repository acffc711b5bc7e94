"""Read and write run.json: the model of a run, and the environments that it ran in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from assay.data import codec
from assay.data.documents import Rest, describe, read_document, write_document
from assay.data.writing import write_whole
from assay.errors import RunError
from assay.runs._files import DOCUMENTS
from assay.types import Capabilities, ModelIdentity

if TYPE_CHECKING:
    from pathlib import Path

RUN_FILE = "run.json"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two engines' logits over all positions; ``kl`` is from the reference, in nats."""

    positions: int
    cosine_mean: float
    cosine_min: float
    max_abs_difference: float
    top1_agreement: float  # share of positions where both would take the same token
    kl_mean: float
    kl_max: float


@dataclass(frozen=True, slots=True)
class ParityGateOutcome:
    """The parity gate's outcome.

    ``off``: it was switched off; ``no-gpu``: there is nothing to compare.
    """

    state: Literal["passed", "failed", "off", "no-gpu"]
    device: str = ""
    agreement: Agreement | None = None
    reasons: tuple[str, ...] = ()
    cached: bool = False


describe(omit={"interpreter": "interpreter"})(Capabilities)  # earlier versions lack it
describe(defaults={"name": "", "engine": ""})(ModelIdentity)  # in results files


@describe(omit_none=True, absent=(None, {}))
@dataclass(frozen=True, slots=True)
class Environment:
    """The place where a run is executed: versions, machine, engine, sandbox."""

    assay: str = ""
    python: str = ""
    platform: str = ""
    machine: str = ""
    cpus: int = 0
    engine: dict[str, object] = field(default_factory=dict)  # facts that the engine reports
    sandbox: Capabilities | None = None  # none: nothing is judged
    parity_gate: ParityGateOutcome | None = None  # none: completions are not generated here


@describe(
    skip=("rest",),
    omit={"time_limits": "time_limits", "benchmark_file": "benchmark_file"},
    required=("environments",),
    checks={"model": lambda value: isinstance(value, dict) and {"name", "engine"} <= value.keys()},
)
@dataclass(frozen=True, slots=True)
class RunAbout:
    """The content of run.json."""

    key: str  # digest of protocol and model: a run with the same one is resumed
    created: str
    model: ModelIdentity
    selection: str = ""  # label of the problems, if they are not the whole benchmark
    tests_seed: str = ""  # for tests with random inputs; runs of earlier versions have none
    time_limits: dict[str, float] = field(default_factory=dict)  # CPU seconds by task, if by a rule
    benchmark_file: str = ""  # path of a benchmark of the user's own
    environments: tuple[Environment, ...] = ()
    rest: Rest = field(default_factory=Rest, repr=False)  # what other versions write


def add_environment(
    earlier: tuple[Environment, ...], environment: Environment
) -> tuple[Environment, ...]:
    """Return all environments, each once, as they will be read again."""
    added = read_document(Environment, write_document(environment))
    return earlier if added in earlier else (*earlier, added)


def read_about(path: Path) -> RunAbout:
    """Return the content of a run folder's run.json. Raise RunError if it is not valid."""
    content = DOCUMENTS.read_json(path / RUN_FILE)
    try:
        return read_document(RunAbout, content)
    except ValueError as error:
        raise RunError(
            f"{path / RUN_FILE}: is not a run of assay ({error}). Restore it from a copy."
        ) from error


def write_about(path: Path, about: RunAbout) -> None:
    """Write a run folder's run.json."""
    write_whole(path / RUN_FILE, codec.pretty(write_document(about)))
