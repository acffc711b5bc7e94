"""Evaluate a model. Completions are judged while it still generates others."""

from __future__ import annotations

import dataclasses

from assay import (
    models,
    selection,
)
from assay.pipeline.config import STANDARD, EvalConfig
from assay.pipeline.judging import check_workers, judge_samples, select_problems
from assay.pipeline.prompt_imports import surround
from assay.pipeline.prompt_settings import (
    check_texts,
    describe_form,
    refuse_for_recorded,
    resolve_prompt_settings,
    unused_for_recorded,
)
from assay.pipeline.samples import (
    Samples,
    check_strategy,
    recorded_samples,
)
from assay.progress import Reporter
from assay.prompts import strategies
from assay.runs import Result


def evaluate(config: EvalConfig, reporter: Reporter) -> Result:
    """Run (or resume) the evaluation, write its results file, and return the result."""
    decoding = config.sampling.resolve()  # reports wrong options before anything is loaded
    check_workers(config)
    check_texts(config.system, config.stop)
    strategy = strategies.get(config.prompt_strategy)
    selected = select_problems(config, reporter)
    engine = config.engine
    if config.select and selection.methods.get(config.select).logprobs:
        engine = dataclasses.replace(engine, logprobs=True)
    model = models.open_model(config.model, engine, reporter.note)
    numbers = range(config.rounds or config.sampling.n_samples)
    keys = [(problem.task_id, s) for problem in selected.benchmark.problems for s in numbers]
    gate = config.gate(model)
    check_strategy(config, model)
    if isinstance(model, models.RecordedModel):
        refuse_for_recorded(config.system, config.stop, decoding)
        for flag in unused_for_recorded(config.sampling):
            reporter.note(f"{flag}: has no effect on recorded completions")
        samples = recorded_samples(model, keys)
    else:
        decoding = config.sampling.resolve(thinks=model.thinks)
        if model.thinks and config.sampling.max_tokens is None:
            reporter.note(
                f"the model's chat template lets it think, so max-tokens is {decoding.max_tokens}"
            )
        if config.sampling.n_samples > 1 and decoding.temperature == 0:
            reporter.note("temperature 0 is greedy, so all samples of a problem will be the same")
        reporter.note(describe_form(model.identity))
        form = model.identity.prompt_form
        asking = resolve_prompt_settings(form, config.engine, config.system, config.stop)
        samples = Samples(keys, strategy, asking, decoding)
    samples = dataclasses.replace(samples, planned=config.sampling.n_samples)
    benchmark = surround(selected.benchmark, config.prompt_imports, model.identity.prompt_form)
    return judge_samples(config, selected, benchmark, samples, model, reporter, gate)


def evaluate_all(config: EvalConfig, reporter: Reporter) -> list[Result]:
    """Evaluate with every prompt strategy in turn, the standard one first."""
    results = []
    check_strategy(config, models.open_model(config.model, config.engine, reporter.note))
    for name in sorted(strategies.names(), key=lambda name: name != STANDARD):
        reporter.note(f"prompt strategy {name}")
        results.append(evaluate(dataclasses.replace(config, prompt_strategy=name), reporter))
    return results
