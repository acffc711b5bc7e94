"""Expand a suite into evaluations, and check all of them before anything is loaded."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from assay import models
from assay.errors import AssayError
from assay.models import EngineOptions
from assay.pipeline.config import EvalConfig
from assay.pipeline.evaluate import engine_options
from assay.pipeline.judging import check_workers, load_benchmark
from assay.pipeline.problems import ProblemSelection
from assay.pipeline.prompt_settings import (
    check_texts,
    refuse_for_recorded,
    resolve_prompt_settings,
)
from assay.pipeline.samples import SelectedProblems, check_strategy
from assay.pipeline.suite.suite import (
    NamedDecoding,
    Suite,
    SuiteBenchmark,
    SuiteError,
    SuiteModel,
)

if TYPE_CHECKING:
    from assay.models import Model
    from assay.progress import Reporter
    from assay.types import Benchmark, Decoding

T = TypeVar("T")
ModelKey = tuple[str, EngineOptions]


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One evaluation of a suite, and the entries that it comes from."""

    config: EvalConfig
    model: SuiteModel
    benchmark: SuiteBenchmark
    decoding: NamedDecoding

    @property
    def label(self) -> str:
        config = self.config
        parts = (self.model.name, config.benchmark, config.prompt_strategy, self.decoding.name)
        return " · ".join(parts)


@dataclass(frozen=True, slots=True)
class ReadyRun:
    """An evaluation whose model is open, but not loaded, and whose problems are read."""

    plan: PlannedRun
    model: Model
    key: ModelKey  # runs with the same one share a load
    selected: SelectedProblems
    decoding: Decoding


def plan_runs(suite: Suite, base: EvalConfig) -> list[PlannedRun]:
    """Return the evaluations of a suite, those of one model together.

    ``base`` has the settings that a suite does not: results folder, sandbox, ``--fresh``. Raise
    SuiteError with all problems.
    """
    problems = _Problems(suite)
    found: list[PlannedRun] = []
    seen: dict[EvalConfig, PlannedRun] = {}
    for model, benchmark, strategy, decoding in _combinations(suite):
        line = decoding.line or benchmark.line
        config = problems.attempt(line, _config, suite, base, model, benchmark, strategy, decoding)
        if config is None:
            continue
        run = PlannedRun(config, model, benchmark, decoding)
        unnamed = dataclasses.replace(config, engine=dataclasses.replace(config.engine, name=""))
        if (other := seen.get(unnamed)) is not None:
            problems.add(
                max(benchmark.line, decoding.line, model.line),
                f"{run.label} is the same evaluation as {other.label}. Drop one.",
            )
        seen.setdefault(unnamed, run)
        found.append(run)
    problems.report()
    return found


def prepare_runs(suite: Suite, plans: Sequence[PlannedRun], reporter: Reporter) -> list[ReadyRun]:
    """Open every model and read every benchmark. Raise SuiteError with all problems.

    Nothing is loaded: a model that is open is known by its digests.
    """
    problems = _Problems(suite)
    opened: dict[ModelKey, Model | None] = {}
    read: dict[tuple[str, str], Benchmark | None] = {}
    found = []
    for plan in plans:
        config = plan.config
        at_model, at_benchmark = plan.model.line, plan.benchmark.line
        key = (config.model, engine_options(config))
        if key not in opened:
            opened[key] = problems.attempt(at_model, models.open_model, *key, reporter.note)
        name = (config.benchmark, config.split)
        if name not in read:
            read[name] = problems.attempt(at_benchmark, load_benchmark, config, reporter)
        model, benchmark = opened[key], read[name]
        decoding = selected = None
        if model is not None:
            decoding = problems.attempt(at_model, _check_model, config, model)
        if benchmark is not None:
            selected = problems.attempt(at_benchmark, _select, config, benchmark)
        if model is not None and selected is not None and decoding is not None:
            found.append(ReadyRun(plan, model, key, selected, decoding))
    if suite.name:
        for line, text in _same_names(found):
            problems.add(line, text)
    problems.report()
    return found


def _same_names(runs: Sequence[ReadyRun]) -> Iterator[tuple[int, str]]:
    """Yield a problem for each model whose name in results is that of another model."""
    entries: dict[str, SuiteModel] = {}
    for run in runs:
        entry, name = run.plan.model, run.model.identity.name
        other = entries.setdefault(name, entry)
        if other != entry:
            yield entry.line, f"'{name}' is also the name of line {other.line}. Give it a name."


def _combinations(
    suite: Suite,
) -> Iterator[tuple[SuiteModel, SuiteBenchmark, str, NamedDecoding]]:
    """Yield every combination that the suite's entries allow."""
    for model in suite.models:
        for benchmark in suite.benchmarks:
            only = model.choice.benchmarks
            if only is not None and benchmark.name not in only:
                continue
            choices = (model.choice, benchmark.choice)
            for strategy in suite.strategies_of(choices):
                for decoding in suite.decodings_of(choices):
                    yield model, benchmark, strategy, decoding


def _config(
    suite: Suite,
    base: EvalConfig,
    model: SuiteModel,
    benchmark: SuiteBenchmark,
    strategy: str,
    decoding: NamedDecoding,
) -> EvalConfig:
    """Return the settings of one evaluation. The model's own override the benchmark's."""
    settings = suite.settings
    for more in (decoding.settings, benchmark.settings, model.settings):
        settings = more.over(settings)
    problems = base.problems
    if problems == ProblemSelection():
        problems = ProblemSelection(settings.problems or "", settings.tasks or ())
    config = dataclasses.replace(
        base,
        benchmark=benchmark.name,
        split=settings.split or "",
        select=settings.select or "",
        problems=problems,
        prompt_imports=settings.prompt_imports or base.prompt_imports,
        model=model.reference,
        sampling=decoding.sampling(settings),
        prompt_strategy=strategy,
        system=settings.system or "",
        stop=settings.stop or (),
        engine=model.engine,
    )
    config.sampling.resolve()
    check_workers(config)
    check_texts(config.system, config.stop)
    engine_options(config)
    return config


def _select(config: EvalConfig, whole: Benchmark) -> SelectedProblems:
    benchmark, label = config.problems.apply(whole)
    return SelectedProblems(benchmark, label, len(whole.problems))


def _check_model(config: EvalConfig, model: Model) -> Decoding:
    """Return the decoding. Raise an error for settings that the model does not support."""
    check_strategy(config, model)
    decoding = config.sampling.resolve(thinks=model.thinks)
    if isinstance(model, models.RecordedModel):
        refuse_for_recorded(config.system, config.stop, decoding)
    else:
        form = model.identity.prompt_form
        resolve_prompt_settings(form, config.engine, config.system, config.stop)
    return decoding


@dataclass(slots=True)
class _Problems:
    """Collect problems with the lines of the suite's file."""

    suite: Suite
    found: dict[tuple[int, str], None] = field(default_factory=dict)

    def attempt(self, line: int, read: Callable[..., T], *arguments: object) -> T | None:
        """Return what a function returns for these arguments, or None after a problem."""
        try:
            return read(*arguments)
        except AssayError as error:
            self.add(line, str(error))
            return None

    def add(self, line: int, text: str) -> None:
        self.found[line, text] = None

    def report(self) -> None:
        """Raise SuiteError if there are problems. One without a file is raised as it is."""
        if self.found:
            lines = (f"Line {n}: {text}" if n else text for n, text in sorted(self.found))
            raise SuiteError(self.suite.file or "suite", tuple(lines))
