"""Expand a suite into evaluations, and check all of them before anything is loaded."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay import models
from assay.data.checked_files import Mistakes
from assay.models import EngineOptions, Model
from assay.pipeline.config import EvalConfig
from assay.pipeline.plan import (
    RunPlan,
    check_recorded,
    engine_options,
    plan_evaluation,
    settle_settings,
)
from assay.pipeline.problems import (
    ProblemSelection,
    SelectedProblems,
    apply_selection,
    load_benchmark,
)
from assay.pipeline.prompting import decide_sampling
from assay.pipeline.suite.suite import (
    DEFAULT_DECODING,
    NamedDecoding,
    RunSettings,
    Suite,
    SuiteBenchmark,
    SuiteError,
    SuiteModel,
    name_decoding,
)
from assay.prompts import find_strategy
from assay.types import Prompt

if TYPE_CHECKING:
    from assay.pipeline.site import Site
    from assay.progress import Reporter
    from assay.types import Benchmark

ModelKey = tuple[str, EngineOptions]
SAME_NAMED = ("split", "select", "prompt_imports", "system", "stop")  # in settings and configs
WhenOpen = Callable[[Model], None]


class _NotOpenedError(Exception):
    """A model was not opened, because the suite cannot run anyway."""


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
        name = self.benchmark.name + (f"-{config.split}" if config.split else "")
        parts = (self.model.name, name, config.prompt_strategy, self.decoding.name)
        return " · ".join(parts)


@dataclass(frozen=True, slots=True)
class ReadyRun:
    """An evaluation whose model is open, but not loaded, and whose problems are read."""

    entry: PlannedRun
    plan: RunPlan
    key: ModelKey  # runs with the same one share a load

    @property
    def benchmark(self) -> str:
        """Return the name in results. That of a split has the split in it."""
        return self.plan.selected.benchmark.name


def prepare_suite(
    suite: Suite,
    base: EvalConfig,
    reporter: Reporter,
    problems: Mistakes | None = None,
    when_open: WhenOpen = lambda _: None,
) -> list[ReadyRun]:
    """Return the evaluations of a suite, those of one model together. Nothing is loaded.

    ``base`` has the settings that a suite does not: results folder, sandbox, ``--fresh``.
    ``when_open`` is called with the first model before its problems are read. Raise SuiteError with
    all mistakes, including those that were found before.
    """
    problems = problems or Mistakes(suite.file, SuiteError)
    runs = _prepare(plan_runs(suite, base, problems), reporter, problems, when_open)
    for line, text in _missed_targets(suite, runs):
        problems.add(line, text)
    if suite.name:
        for line, text in _same_names(runs):
            problems.add(line, text)
    problems.report()
    return runs


def plan_runs(suite: Suite, base: EvalConfig, problems: Mistakes) -> list[PlannedRun]:
    """Return the evaluations of a suite. Nothing is read."""
    runs: list[PlannedRun] = []
    seen: dict[EvalConfig, PlannedRun] = {}
    for model, benchmark, strategy, decoding in _combinations(suite):
        line = decoding.line or benchmark.line
        config = problems.attempt(line, _config, suite, base, model, benchmark, strategy, decoding)
        if config is None:
            continue
        if decoding is DEFAULT_DECODING:
            decoding = dataclasses.replace(decoding, name=name_decoding(config.sampling))
        run = PlannedRun(config, model, benchmark, decoding)
        unnamed = dataclasses.replace(config, engine=dataclasses.replace(config.engine, name=""))
        if (other := seen.get(unnamed)) is not None:
            problems.add(
                max(benchmark.line, decoding.line, model.line),
                f"{run.label} is the same evaluation as {other.label}. Drop one.",
            )
        seen.setdefault(unnamed, run)
        runs.append(run)
    return runs


def _prepare(
    plans: Sequence[PlannedRun], reporter: Reporter, problems: Mistakes, when_open: WhenOpen
) -> list[ReadyRun]:
    """Open every model and read every benchmark. A model that is open is known by its digests."""
    opened: dict[ModelKey, Model | None] = {}
    read: dict[tuple[str, str], Benchmark | None] = {}
    runs = []
    for plan in plans:
        config = plan.config
        at_model, at_benchmark = plan.model.line, plan.benchmark.line
        key = (config.model, engine_options(config))
        if key not in opened:
            with contextlib.suppress(_NotOpenedError):
                opened[key] = problems.attempt(
                    at_model, _open_model, config.site, key, reporter, problems
                )
            first = opened.get(key) if len(opened) == 1 else None
            if first is not None and not problems.found:
                when_open(first)
        name = (config.benchmark, config.split)
        if name not in read:
            read[name] = problems.attempt(at_benchmark, load_benchmark, config, reporter)
        model, benchmark, selected = opened.get(key), read[name], None
        if benchmark is not None:
            selected = problems.attempt(at_benchmark, _select, config, benchmark)
        if model is not None:
            ready = problems.attempt(at_model, _settle, plan, key, model, selected, reporter)
            if ready is not None:
                runs.append(ready)
    return runs


def _open_model(site: Site, key: ModelKey, reporter: Reporter, problems: Mistakes) -> Model:
    """Open a model. If the suite has problems, one that is elsewhere is not fetched any more."""
    models.check_reference(key[0])
    if problems.found and not models.is_local(key[0]):
        raise _NotOpenedError
    return site.open_model(*key, reporter.note)


def _missed_targets(suite: Suite, runs: Sequence[ReadyRun]) -> Iterator[tuple[int, str]]:
    """Yield a problem for each target that no evaluation has enough samples for."""
    for entry in suite.benchmarks:
        numbers = [run.plan.n_samples for run in runs if run.entry.benchmark is entry]
        for figure in entry.targets:
            if numbers and max(numbers) < (k := int(figure.partition("@")[2])):
                yield (
                    entry.line,
                    f"the target {figure} of {entry.name} needs {k} samples per problem, and there "
                    f"{'is 1' if max(numbers) == 1 else f'are {max(numbers)}'}. Give n_samples: "
                    f"{k} without temperature 0, or drop the target.",
                )


def _same_names(runs: Sequence[ReadyRun]) -> Iterator[tuple[int, str]]:
    """Yield a problem for each model whose name in results is that of another model."""
    entries: dict[str, SuiteModel] = {}
    for run in runs:
        entry, name = run.entry.model, run.plan.model.identity.name
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
            choices = (model.choice, benchmark.choice)  # the first one that names some counts
            strategies = (c.strategies for c in choices if c.strategies is not None)
            names = next((c.decodings for c in choices if c.decodings is not None), None)
            for strategy in next(strategies, suite.strategies):
                for decoding in suite.decodings:
                    if names is None or decoding.name in names:
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
    given = settings.given()
    config = dataclasses.replace(
        base,
        benchmark=benchmark.reference,
        problems=_selection(base.problems, settings),
        model=model.reference,
        sampling=decoding.apply(settings),
        prompt_strategy=strategy,
        engine=model.engine,
        **{name: given[name] for name in SAME_NAMED if name in given},
    )
    config.check()
    return config


def _selection(selection: ProblemSelection, settings: RunSettings) -> ProblemSelection:
    """Return which problems to use. What the command says replaces the same part of the suite."""
    by_name = selection.range or selection.tasks or selection.file
    return dataclasses.replace(
        selection,
        range=selection.range if by_name else settings.problems or "",
        tasks=selection.tasks if by_name else settings.tasks or (),
        first_day=selection.first_day or settings.first_day or "",
        last_day=selection.last_day or settings.last_day or "",
        labels=selection.labels or settings.labels or (),
    )


def _select(config: EvalConfig, whole: Benchmark) -> SelectedProblems:
    find_strategy(config.prompt_strategy, whole)
    return apply_selection(config, whole)


def _settle(
    entry: PlannedRun,
    key: ModelKey,
    model: Model,
    selected: SelectedProblems | None,
    reporter: Reporter,
) -> ReadyRun | None:
    """Return the evaluation. Raise an error for settings that the model does not support.

    Without problems, which have their own mistakes, there is none, but the settings are checked.
    """
    config, recorded = entry.config, isinstance(model, models.RecordedModel)
    check_recorded(config, model)
    if selected is None:
        if not recorded:
            settle_settings(config, model, model.identity.prompt_form, Prompt())
        return None
    if not recorded:
        strategy = find_strategy(config.prompt_strategy, selected.benchmark)
        config = dataclasses.replace(config, prompt_strategy=strategy.name)
    sampling = decide_sampling(config.sampling, model, reporter)
    config = dataclasses.replace(config, sampling=sampling)
    plan = plan_evaluation(config, model, selected)
    return ReadyRun(dataclasses.replace(entry, config=config), plan, key)
