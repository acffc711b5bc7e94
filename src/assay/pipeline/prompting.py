"""What a model is sent for one problem."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay import benchmarks, models
from assay.errors import UsageError
from assay.prompts import strategies

if TYPE_CHECKING:
    from assay.models import EngineOptions, Rendered
    from assay.pipeline.stream import Observer
    from assay.types import Benchmark, Problem, Prompt


@dataclass(frozen=True, slots=True)
class PromptConfig:
    """A problem, and how it is to be asked."""

    benchmark: str
    task: str  # its id, or the part of it behind the last slash
    strategy: str
    engine: EngineOptions
    model: str = ""  # none: nothing is rendered
    data_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    task_id: str
    prompt: Prompt
    rendered: Rendered | None  # by a model


def prompted(config: PromptConfig, observer: Observer) -> Asked:
    """The problem's prompt, in the form that the model wants; without a model that of a chat."""
    build = strategies.get(config.strategy).build
    benchmark = benchmarks.load(config.benchmark, observer.note, config.data_dir)
    problem = _problem(benchmark, config.task)
    if not config.model:
        form = config.engine.prompt_form
        prompt = build(problem, "chat" if form == "auto" else form)
        return Asked(problem.task_id, prompt, None)
    with contextlib.closing(models.open_model(config.model, config.engine, observer.note)) as model:
        prompt = build(problem, model.identity.prompt_form)
        return Asked(problem.task_id, prompt, model.render(prompt))


def _problem(benchmark: Benchmark, task: str) -> Problem:
    for problem in benchmark.problems:
        if task in (problem.task_id, problem.task_id.rpartition("/")[2]):
            return problem
    first, last = benchmark.problems[0].task_id, benchmark.problems[-1].task_id
    raise UsageError(f"{benchmark.name} has no task {task}: its tasks are {first} to {last}")
