"""Read and write run.json: the model of a run, and the environments that it ran in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from assay.data import codec
from assay.data.writing import write_whole
from assay.errors import RunError
from assay.runs._files import DOCUMENTS
from assay.runs._rest import Rest, find_rest
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


@dataclass(frozen=True, slots=True)
class Environment:
    """Record where a run is executed: versions, machine, engine, sandbox."""

    assay: str = ""
    python: str = ""
    platform: str = ""
    machine: str = ""
    cpus: int = 0
    engine: dict[str, object] = field(default_factory=dict)  # facts that the engine reports
    sandbox: Capabilities | None = None  # none: nothing is judged
    parity_gate: ParityGateOutcome | None = None  # none: completions are not generated here


@dataclass(frozen=True, slots=True)
class RunAbout:
    """The content of run.json."""

    key: str  # digest of protocol and model: a run with the same one is resumed
    created: str
    model: ModelIdentity
    environments: tuple[Environment, ...] = ()
    selection: str = ""  # label of the problems, if they are not the whole benchmark
    tests_seed: str = ""  # for tests with random inputs; runs of earlier versions have none
    time_limits: dict[str, float] = field(default_factory=dict)  # CPU seconds by task, if by a rule
    benchmark_file: str = ""  # path of a benchmark of the user's own
    rest: Rest = field(default_factory=Rest, repr=False)  # what other versions write


def add_environment(
    earlier: tuple[Environment, ...], environment: Environment
) -> tuple[Environment, ...]:
    """Return all environments, each once."""
    found = parse_environment(render_environment(environment))  # as it will be read again
    return earlier if found in earlier else (*earlier, found)


def read_about(path: Path) -> RunAbout:
    """Return the content of a run folder's run.json. Raise RunError if it is not valid."""
    content = DOCUMENTS.read_json(path / RUN_FILE)
    try:
        return parse_about(content)
    except ValueError as error:
        raise RunError(
            f"{path / RUN_FILE}: is not a run of assay ({error}). Restore it from a copy."
        ) from error


def write_about(path: Path, about: RunAbout) -> None:
    """Write a run folder's run.json."""
    write_whole(path / RUN_FILE, codec.pretty(about.rest.restore(_render(about))))


def parse_about(content: Any) -> RunAbout:
    """Return the typed content of run.json. Raise ValueError if it is not valid."""
    if not isinstance(content, dict):
        raise ValueError(f"expected an object, found {type(content).__name__}")
    known = {name: value for name, value in content.items() if name not in ("rest", "environments")}
    environments = content.get("environments")
    if not isinstance(environments, list):
        raise ValueError("field 'environments' is missing")
    about = replace(
        codec.read_known(RunAbout, known),
        environments=tuple(map(parse_environment, environments)),
    )
    return replace(about, rest=find_rest(content, _render(about)))


def _render(about: RunAbout) -> Any:
    return {
        "key": about.key,
        "created": about.created,
        "model": codec.to_json(about.model),
        "selection": about.selection,
        "tests_seed": about.tests_seed,
        **({"time_limits": about.time_limits} if about.time_limits else {}),
        **({"benchmark_file": about.benchmark_file} if about.benchmark_file else {}),
        "environments": [render_environment(one) for one in about.environments],
    }


def parse_environment(content: Any) -> Environment:
    """Return an environment of a file. Raise ValueError if a field has another type."""
    if not isinstance(content, dict):
        raise ValueError("an environment is not an object")
    given = {name: value for name, value in content.items() if value not in (None, {})}
    return codec.read_known(Environment, given)


def render_environment(environment: Environment) -> Any:
    """Return an environment as files have it."""
    found = codec.to_json(environment)
    if environment.sandbox and not environment.sandbox.interpreter:  # earlier versions lack it
        del found["sandbox"]["interpreter"]
    return {name: value for name, value in found.items() if value is not None}
