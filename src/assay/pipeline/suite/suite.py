"""Define a suite: models, benchmarks, prompt strategies, decodings, and how each is overridden."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay import benchmarks as registered
from assay.errors import MistakesError
from assay.models import EngineOptions
from assay.pipeline.config import ALL, PRESETS, EvalConfig, Sampling
from assay.prompts import DEFAULT_STRATEGY, STANDARD, strategies
from assay.runs.stores.suites import SuiteBaseline
from assay.types import PromptImports


class SuiteError(MistakesError):
    """A suite cannot be run. ``problems`` has one line for each reason."""

    noun = "problem"


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Settings of an evaluation that a suite, a decoding, a benchmark or a model may give.

    None means not given.
    """

    n_samples: int | None = None
    problems: str | None = None
    tasks: tuple[str, ...] | None = None
    first_day: str | None = None  # of the problems' dates; ``from`` in a file
    last_day: str | None = None  # ``to``
    labels: tuple[str, ...] | None = None  # ``label``
    split: str | None = None
    max_tokens: int | None = None
    seed: int | None = None
    system: str | None = None
    stop: tuple[str, ...] | None = None
    select: str | None = None
    prompt_imports: PromptImports | None = None

    def over(self, general: RunSettings) -> RunSettings:
        """Return these settings, and the general ones where these are not given."""
        return dataclasses.replace(general, **self.given())

    def given(self) -> dict[str, Any]:
        """Return the settings that are given, by name."""
        named = ((f.name, getattr(self, f.name)) for f in dataclasses.fields(self))
        return {name: value for name, value in named if value is not None}


@dataclass(frozen=True, slots=True)
class NamedDecoding:
    """A way to choose tokens. Settings such as ``n_samples`` can be part of it."""

    name: str
    sampling: Sampling = field(default_factory=Sampling)
    settings: RunSettings = field(default_factory=RunSettings)
    line: int = 0  # in the suite's file

    def apply(self, settings: RunSettings) -> Sampling:
        """Return the settings of sampling, with the number of samples and the limit of tokens."""
        given = settings.given()
        own = {name: given[name] for name in ("n_samples", "max_tokens", "seed") if name in given}
        return dataclasses.replace(self.sampling, **own)


def preset_decoding(name: str, line: int = 0) -> NamedDecoding:
    """Return the decoding of a preset."""
    preset = PRESETS[name]
    sampling = Sampling(temperature=preset.temperature, top_k=preset.top_k)
    return NamedDecoding(name, sampling, RunSettings(n_samples=preset.n_samples), line)


@dataclass(frozen=True, slots=True)
class SuiteChoice:
    """The names that an entry is combined with. None means all of the suite."""

    strategies: tuple[str, ...] | None = None
    decodings: tuple[str, ...] | None = None
    benchmarks: tuple[str, ...] | None = None  # of a model only


@dataclass(frozen=True, slots=True)
class SuiteModel:
    """A model with its engine's options, which have its name."""

    reference: str
    engine: EngineOptions = field(default_factory=EngineOptions)
    settings: RunSettings = field(default_factory=RunSettings)
    choice: SuiteChoice = field(default_factory=SuiteChoice)
    line: int = 0

    @property
    def name(self) -> str:
        return self.engine.name or self.reference


@dataclass(frozen=True, slots=True)
class SuiteBenchmark:
    """A benchmark, the scores to reach, and the scores that others published."""

    name: str
    settings: RunSettings = field(default_factory=RunSettings)
    choice: SuiteChoice = field(default_factory=SuiteChoice)
    targets: dict[str, float] = field(default_factory=dict)  # by figure, such as pass@1
    baselines: tuple[SuiteBaseline, ...] = ()
    line: int = 0
    file: str = ""  # of a benchmark of the user's own

    @property
    def reference(self) -> str:
        return self.file or self.name


def expand_suites(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names with those of suites, such as ``core``, replaced by their benchmarks."""
    suites = registered.benchmarks.suites()
    return tuple(dict.fromkeys(one for name in names for one in suites.get(name, [name])))


GREEDY = "greedy"
DEFAULT_DECODING = NamedDecoding(GREEDY)  # of one sample; several are drawn


def name_decoding(sampling: Sampling) -> str:
    """Return the name of a decoding without one of its own."""
    temperature = sampling.decide()[0].temperature
    return f"temperature {temperature:g}" if temperature else GREEDY


def suite_of(config: EvalConfig, benchmarks: Sequence[str], models: Sequence[str]) -> Suite:
    """Return a suite without a file: every model on every benchmark, with the config's settings."""
    names: tuple[str, ...] = (config.prompt_strategy,)
    if config.prompt_strategy == ALL:
        names = tuple(sorted(strategies.names(), key=lambda name: name != STANDARD))
    return Suite(
        tuple(SuiteModel(reference, config.engine) for reference in models),
        tuple(map(SuiteBenchmark, benchmarks)),
        names,
        (NamedDecoding(name_decoding(config.sampling), config.sampling),),
    )


@dataclass(frozen=True, slots=True)
class Suite:
    """Every model is evaluated on every benchmark, with every strategy and decoding."""

    models: tuple[SuiteModel, ...]
    benchmarks: tuple[SuiteBenchmark, ...]
    strategies: tuple[str, ...] = (DEFAULT_STRATEGY,)
    decodings: tuple[NamedDecoding, ...] = (DEFAULT_DECODING,)
    settings: RunSettings = field(default_factory=RunSettings)
    name: str = ""  # of its record; none: no record is written
    file: str = ""  # the suite's file, for messages
