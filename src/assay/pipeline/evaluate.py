"""Evaluate a model. Completions are judged while it still generates others."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay import models, runs, selection
from assay.datasets import cache_dir
from assay.errors import ModelError, RunError, UsageError
from assay.pipeline.config import EvalConfig
from assay.pipeline.judging import (
    check_workers,
    judge_samples,
    load_benchmark,
    select_problems,
)
from assay.pipeline.prompt_imports import surround
from assay.pipeline.prompt_settings import (
    check_texts,
    decide_sampling,
    describe_form,
    may_think,
    refuse_for_recorded,
    resolve_prompt_settings,
    unused_for_recorded,
)
from assay.pipeline.run import build_requests
from assay.pipeline.samples import (
    Samples,
    SelectedProblems,
    check_strategy,
    recorded_samples,
)
from assay.progress import Reporter
from assay.prompts import (
    DEFAULT_STRATEGY,
    STANDARD,
    check_strategy_name,
    find_strategy,
    list_strategies,
)
from assay.runs import Result
from assay.types import Prompt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.models import EngineOptions, Model
    from assay.types import Benchmark, Decoding, Request, SampleKey

NEWEST = 20  # results that are compared with an evaluation before it begins


@dataclass(frozen=True, slots=True)
class SharedInputs:
    """The things that evaluations share: a model, problems, the completions stored so far."""

    model: Model | None = None  # open; the owner ends its engine. None: opened here
    selected: SelectedProblems | None = None  # None: read here
    largest: Decoding | None = None  # of all evaluations: the engine is loaded for it
    written: set[str] = field(default_factory=set)  # keys in the completion store
    when_generated: Callable[[], None] | None = None  # None: the engine is ended


def evaluate(config: EvalConfig, reporter: Reporter, shared: SharedInputs | None = None) -> Result:
    """Run (or resume) the evaluation, write its results file, and return the result."""
    begun, shared = time.monotonic(), shared or SharedInputs()
    decoding = config.sampling.resolve()  # reports wrong options before anything is loaded
    check_workers(config)
    check_texts(config.system, config.stop)
    check_strategy_name(config.prompt_strategy)
    selected = shared.selected or select_problems(config, reporter)
    strategy = find_strategy(config.prompt_strategy, selected.benchmark)
    engine = engine_options(config)
    model = shared.model or config.site.open_model(config.model, engine, reporter.note)
    sampling = decide_sampling(config.sampling, model, reporter)
    config = dataclasses.replace(config, sampling=sampling)
    keys = sample_keys(config, selected)
    form = selected.benchmark.form_for(model.identity.prompt_form)
    typical, described = Prompt(), ""
    if not isinstance(model, models.RecordedModel):
        typical = strategy.build(selected.benchmark.problems[0], form)
        described = describe_form(model, form, typical, engine)
    gate = config.gate(model)
    check_strategy(config, model)
    if config.prompt_strategy == DEFAULT_STRATEGY and strategy.name != STANDARD and described:
        reporter.note(f"prompt strategy {strategy.name}: the default of {selected.benchmark.name}")
    config = dataclasses.replace(config, prompt_strategy=strategy.name)
    benchmark = surround(selected.benchmark, config.prompt_imports, form)
    if isinstance(model, models.RecordedModel):
        refuse_for_recorded(config.system, config.stop, decoding)
        for flag in unused_for_recorded(config.sampling):
            reporter.note(f"{flag}: has no effect on recorded completions")
        samples = recorded_samples(model, keys, form)
        planned = config.sampling.n_samples
        samples = dataclasses.replace(samples, begun=begun, planned=planned)
        return judge_samples(config, selected, benchmark, samples, model, reporter, gate)
    asking = resolve_prompt_settings(form, config.engine, config.system, config.stop)
    thinks = may_think(model, form, typical)
    decoding = config.sampling.resolve(thinks=thinks, usual=selected.benchmark.max_tokens)
    if thinks and config.sampling.max_tokens is None:
        reporter.note(
            f"the model's chat template supports reasoning, so max-tokens is {decoding.max_tokens}"
        )
    reporter.note(described)
    store = open_store(config, model, engine, decoding, shared.written)
    with contextlib.ExitStack() as loaded:
        if shared.model is None and isinstance(model, models.Preloadable):
            loaded.enter_context(model.keep_loaded())  # so that it can load in advance
        if needs_model(config, model, selected, decoding, shared.written):
            # It loads while references are checked and the sandbox starts.
            models.preload(model, shared.largest or decoding)
        when_generated = shared.when_generated or loaded.close
        samples = Samples(
            keys, strategy, asking, decoding, store=store, when_generated=when_generated,
            begun=begun, planned=config.sampling.n_samples,
        )  # fmt: skip
        return judge_samples(config, selected, benchmark, samples, model, reporter, gate)


def evaluate_all(config: EvalConfig, reporter: Reporter) -> list[Result]:
    """Evaluate with every strategy of the benchmark, its default first, with one load.

    A further strategy that the model cannot be given is left out, with a note that says why.
    """
    results: list[Result] = []
    benchmark = load_benchmark(config, reporter)
    with open_shared(config, reporter) as shared:
        for name in list_strategies(benchmark):
            if results and (why := _explain_misfit(name, benchmark, config, shared)):
                reporter.note(f"prompt strategy {name} is left out: {why}")
                continue
            reporter.note(f"prompt strategy {name}")
            one = dataclasses.replace(config, prompt_strategy=name)
            results.append(evaluate(one, reporter, shared))
    return results


def _explain_misfit(
    name: str, benchmark: Benchmark, config: EvalConfig, shared: SharedInputs
) -> str:
    """Return why the model cannot be given the prompts of a strategy, or an empty text."""
    assert shared.model is not None
    form = benchmark.form_for(shared.model.identity.prompt_form)
    try:
        typical = find_strategy(name, benchmark).build(benchmark.problems[0], form)
        describe_form(shared.model, form, typical, config.engine)
    except (ModelError, UsageError) as error:
        return str(error)
    return ""


@contextlib.contextmanager
def open_shared(config: EvalConfig, reporter: Reporter) -> Iterator[SharedInputs]:
    """Open the model for several evaluations. It is loaded once and ended with the block."""
    model = config.site.open_model(config.model, engine_options(config), reporter.note)
    check_strategy(config, model)
    with contextlib.ExitStack() as loaded:
        if isinstance(model, models.Preloadable):
            loaded.enter_context(model.keep_loaded())
        yield SharedInputs(model, when_generated=lambda: None)


def engine_options(config: EvalConfig) -> EngineOptions:
    """Return the engine's options, with log-probabilities if a selection method needs them."""
    if config.select and selection.methods.get(config.select).logprobs:
        return dataclasses.replace(config.engine, logprobs=True)
    return config.engine


def open_store(
    config: EvalConfig,
    model: Model,
    engine: EngineOptions,
    decoding: Decoding,
    written: set[str],
) -> runs.CompletionStore | None:
    """Return the store of completions for this model and engine, or None if it is not used.

    With ``--fresh``, and for a server, whose model can change unseen, only completions that this
    process has stored are reused.
    """
    if config.no_cache or not models.is_identified(model):
        return None
    engine = dataclasses.replace(engine, longest=max(engine.longest, decoding.max_tokens))
    return runs.CompletionStore(
        cache_dir() / "completions",
        models.text_conditions(model, engine),
        written=written,
        earlier=not (config.fresh or models.is_served(model)),
    )


def needs_model(
    config: EvalConfig,
    model: Model,
    selected: SelectedProblems,
    decoding: Decoding,
    written: set[str],
) -> bool:
    """Return whether completions will probably have to be generated.

    Whether the run itself has them is only certain when it is opened, which is later.
    """
    if isinstance(model, models.RecordedModel) or _is_finished(config, model, selected, decoding):
        return False
    store = open_store(config, model, engine_options(config), decoding, written)
    return store is None or not store.has_all(planned_requests(config, model, selected, decoding))


def _is_finished(
    config: EvalConfig, model: Model, selected: SelectedProblems, decoding: Decoding
) -> bool:
    """Return whether one of the newest results looks like that of this evaluation."""
    if config.fresh:
        return False
    name = selected.benchmark.name
    for path in sorted(config.results_dir.glob(f"{name}_*.json"), reverse=True)[:NEWEST]:
        with contextlib.suppress(RunError):
            found = runs.read_result(path, follow=False)
            same = (
                found.model_identity is not None
                and found.model_identity.weights_sha256 == model.identity.weights_sha256
                and found.config.decoding == decoding
                and found.config.num_samples == config.sampling.n_samples
                and found.config.prompt_strategy == config.prompt_strategy
                and found.config.problem_selection == selected.label
                and found.protocol.data_sha256 == selected.benchmark.data_sha256
            )
            if same and found.complete:
                return True
    return False


def planned_requests(
    config: EvalConfig, model: Model, selected: SelectedProblems, decoding: Decoding
) -> Iterator[Request]:
    """Yield everything that an evaluation asks the model."""
    form = selected.benchmark.form_for(model.identity.prompt_form)
    asking = resolve_prompt_settings(form, config.engine, config.system, config.stop)
    keys = sample_keys(config, selected)
    strategy = find_strategy(config.prompt_strategy, selected.benchmark)
    return build_requests(keys, selected.benchmark, strategy, asking, decoding)


def sample_keys(config: EvalConfig, selected: SelectedProblems) -> list[SampleKey]:
    """Return all samples of an evaluation, those of one problem together."""
    numbers = range(config.rounds or config.sampling.n_samples)
    return [(problem.task_id, s) for problem in selected.benchmark.problems for s in numbers]
