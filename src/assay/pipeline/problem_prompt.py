"""Build what a model is sent for one problem."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay import benchmarks, models
from assay.errors import UsageError
from assay.pipeline.prompt_settings import (
    check_texts,
    complete_prompt,
    describe_form,
    resolve_prompt_settings,
)
from assay.prompts import check_strategy_name, find_strategy

if TYPE_CHECKING:
    from assay.models import EngineOptions, Rendered
    from assay.progress import Reporter
    from assay.types import Benchmark, Problem, Prompt, PromptForm


@dataclass(frozen=True, slots=True)
class PromptConfig:
    """A problem, and how to prompt a model with it."""

    benchmark: str
    task: str  # its id, or the end of the id after a slash
    strategy: str
    engine: EngineOptions
    model: str = ""  # none: nothing is rendered
    system: str = ""
    stop: tuple[str, ...] = ()
    data_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class ProblemPrompt:
    task_id: str
    prompt: Prompt
    rendered: Rendered | None  # by a model


def build_problem_prompt(config: PromptConfig, reporter: Reporter) -> ProblemPrompt:
    """Return the problem's prompt in the model's form, or as a chat without a model."""
    check_texts(config.system, config.stop)
    check_strategy_name(config.strategy)
    benchmark = benchmarks.load(config.benchmark, reporter.note, config.data_dir)
    build = find_strategy(config.strategy, benchmark).build
    problem = find_problem(benchmark, config.task)
    if not config.model:
        _refuse_model_settings(config.engine)
        chosen = config.engine.prompt_form
        form = benchmark.form_for("chat" if chosen == "auto" else chosen)
        return ProblemPrompt(problem.task_id, _complete(build(problem, form), form, config), None)
    with contextlib.closing(models.open_model(config.model, config.engine, reporter.note)) as model:
        form = benchmark.form_for(model.identity.prompt_form)
        prompt = _complete(build(problem, form), form, config)
        if prompt.prefill:
            describe_form(model, form, prompt, config.engine)  # or raise an error
        return ProblemPrompt(problem.task_id, prompt, model.render(prompt))


def _refuse_model_settings(engine: EngineOptions) -> None:
    """Raise UsageError for settings that show only in what a model renders."""
    for flag, value in (
        ("--thinking", engine.thinking),
        ("--revision", engine.revision),
        ("--engine-option", engine.engine_options),
    ):
        if value:
            raise UsageError(f"{flag}: needs --model. Give the model to render the prompt for.")


def _complete(prompt: Prompt, form: PromptForm, config: PromptConfig) -> Prompt:
    settings = resolve_prompt_settings(form, config.engine, config.system, config.stop)
    return complete_prompt(prompt, settings)


def find_problem(benchmark: Benchmark, task: str) -> Problem:
    """Return the first problem whose task id is this or ends so after a slash; else UsageError."""
    for problem in benchmark.problems:
        if f"/{problem.task_id}".endswith(f"/{task}"):
            return problem
    first, last = benchmark.problems[0].task_id, benchmark.problems[-1].task_id
    raise UsageError(f"{task}: is not a task of {benchmark.name}. Give one from {first} to {last}.")
