"""Evaluate a model, once or with every prompt strategy."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from assay import models
from assay.errors import ModelError, UsageError
from assay.models import Model
from assay.pipeline.config import EvalConfig
from assay.pipeline.plan import check_recorded, engine_options, plan_evaluation
from assay.pipeline.problems import load_benchmark, select_problems
from assay.pipeline.prompting import decide_sampling, describe_form
from assay.pipeline.run import execute
from assay.pipeline.site import CheckModel
from assay.progress import Reporter
from assay.prompts import find_strategy, list_strategies
from assay.protocol import Protocol
from assay.runs import ParityGateOutcome, Result
from assay.types import Benchmark


@dataclass(frozen=True, slots=True)
class OpenModel:
    """A model that several evaluations share. It is loaded once."""

    model: Model
    gate: ParityGateOutcome | None = None  # of its device
    written: set[str] = field(default_factory=set)  # keys of completions that these have stored


def evaluate(
    config: EvalConfig,
    reporter: Reporter,
    shared: OpenModel | None = None,
    *,
    gate: CheckModel | None = None,
    admit: Callable[[Protocol, str], None] = lambda _, __: None,
) -> Result:
    """Run (or resume) the evaluation, write its results file, and return the result.

    ``gate`` checks the device of a model that is opened here. ``admit`` is called with the protocol
    and the key of the run before that is opened, and raises an error to refuse it.
    """
    begun = time.monotonic()
    config.check()  # before anything is loaded
    selected = select_problems(config, reporter)
    find_strategy(config.prompt_strategy, selected.benchmark)
    model = shared.model if shared else open_model(config, reporter)
    config = dataclasses.replace(config, sampling=decide_sampling(config.sampling, model, reporter))
    plan = plan_evaluation(config, model, selected)
    with contextlib.ExitStack() as loaded:
        if shared is None:
            if isinstance(model, models.Preloadable):
                loaded.enter_context(model.keep_loaded())  # so that it can load in advance
            shared = OpenModel(model, check_device(config, model, gate, reporter))
        plan = dataclasses.replace(
            plan, gate=shared.gate, store=plan.open_store(shared.written), begun=begun,
            admit=admit, when_generated=lambda _: loaded.close(),
        )  # fmt: skip
        return execute(plan, reporter)


def evaluate_all(
    config: EvalConfig, reporter: Reporter, gate: CheckModel | None = None
) -> list[Result]:
    """Evaluate with every strategy of the benchmark, its default first, with one load.

    A further strategy that the model cannot be given is left out, with a note that says why.
    """
    results: list[Result] = []
    benchmark = load_benchmark(config, reporter)
    with open_shared(config, reporter, gate) as shared:
        for name in list_strategies(benchmark):
            one = dataclasses.replace(config, prompt_strategy=name)
            if results and (why := _explain_misfit(one, benchmark, shared.model)):
                reporter.note(f"prompt strategy {name} is left out: {why}")
                continue
            reporter.note(f"prompt strategy {name}")
            results.append(evaluate(one, reporter, shared))
    return results


def _explain_misfit(config: EvalConfig, benchmark: Benchmark, model: Model) -> str:
    """Return why the model cannot be given the prompts of a strategy, or an empty text."""
    form = benchmark.form_for(model.identity.prompt_form)
    try:
        strategy = find_strategy(config.prompt_strategy, benchmark)
        describe_form(model, form, strategy.build(benchmark.problems[0], form), config.engine)
    except (ModelError, UsageError) as error:
        return str(error)
    return ""


def open_model(config: EvalConfig, reporter: Reporter) -> Model:
    """Open the model of an evaluation. It is loaded when it is first used."""
    return config.site.open_model(config.model, engine_options(config), reporter.note)


def check_device(
    config: EvalConfig, model: Model, gate: CheckModel | None, reporter: Reporter
) -> ParityGateOutcome | None:
    """Return what the gate says about the model's device, where that is. It may raise an error."""
    if gate is None:
        return None
    return config.site.check_model(gate, config.model, config.engine, model, reporter.note)


@contextlib.contextmanager
def open_shared(
    config: EvalConfig, reporter: Reporter, gate: CheckModel | None = None
) -> Iterator[OpenModel]:
    """Open the model for several evaluations. It is loaded once and ended with the block."""
    model = open_model(config, reporter)
    check_recorded(config, model)
    with contextlib.ExitStack() as loaded:
        if isinstance(model, models.Preloadable):
            loaded.enter_context(model.keep_loaded())
        yield OpenModel(model, check_device(config, model, gate, reporter))
