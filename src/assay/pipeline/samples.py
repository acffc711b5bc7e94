"""Select the samples to judge, and check that a file has all of them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay import models, runs
from assay.errors import UsageError
from assay.pipeline.config import EvalConfig, ScoreConfig
from assay.pipeline.prompt_imports import surround
from assay.pipeline.prompt_settings import resolve_prompt_settings
from assay.prompts import DEFAULT_STRATEGY, STANDARD, Strategy
from assay.types import Decoding, Prompt, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from assay.progress import Reporter
    from assay.protocol import PromptSettings
    from assay.types import Benchmark, Completion, PromptForm, SampleKey

# How recorded completions were generated is unknown.
RECORDED = Strategy("recorded", 0, lambda problem, _: Prompt(text=problem.prompt))
UNKNOWN_DECODING = Decoding(max_tokens=0, temperature=0.0, top_k=0, top_p=0.0)


@dataclass(frozen=True, slots=True)
class SelectedProblems:
    """Problems of a benchmark, their label (such as ``[:10]``), and how many the benchmark has."""

    benchmark: Benchmark
    label: str
    total: int


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples to judge, and how they were generated."""

    keys: list[SampleKey]
    strategy: Strategy
    asking: PromptSettings
    decoding: Decoding
    origin: str = ""  # digest of completions that were recorded elsewhere
    store: runs.CompletionStore | None = None  # answers to the same requests
    when_generated: Callable[[], None] = lambda: None  # called before the last ones are judged
    begun: float | None = None  # when the evaluation began, as time.monotonic() counts; none: now
    planned: int = 0  # samples per problem that there may be at most; 0: these


def check_strategy(config: EvalConfig, model: models.Model) -> None:
    """Raise UsageError if a prompt strategy is given for recorded completions."""
    neutral = (DEFAULT_STRATEGY, STANDARD)
    if isinstance(model, models.RecordedModel) and config.prompt_strategy not in neutral:
        raise UsageError("--prompt-strategy: has no effect on recorded completions. Drop it.")


def recorded_samples(
    model: models.RecordedModel, keys: list[SampleKey], form: PromptForm
) -> Samples:
    """Return samples whose generation is unknown; only their form and origin are recorded."""
    identity = model.identity
    asking = resolve_prompt_settings(form, models.EngineOptions(), "", ())
    return Samples(keys, RECORDED, asking, UNKNOWN_DECODING, identity.weights_sha256)


def replay(model: models.RecordedModel, keys: Iterable[SampleKey]) -> Iterator[Completion]:
    """Return the recorded completions of these samples."""
    requests = (Request(task_id, sample, Prompt(), UNKNOWN_DECODING, 0) for task_id, sample in keys)
    return iter(model.generate(requests))


def match_samples(
    config: ScoreConfig, selected: SelectedProblems, reporter: Reporter
) -> tuple[Benchmark, models.RecordedModel, list[SampleKey]]:
    """Match a file with the selected problems. Raise UsageError if samples are missing."""
    model = models.open_recorded(
        config.samples_file, partial=config.partial, name=config.model_name
    )
    wanted = {p.task_id for p in selected.benchmark.problems}
    keys = [key for key in model.list_recorded() if key[0] in wanted]
    others = {task_id for task_id, _ in model.list_recorded()} - wanted
    if others and not (selected.label and keys):
        raise UsageError(
            f"{config.samples_file}: has a sample of {min(others)}, which is not a task of "
            f"{selected.benchmark.name}. Give the right --benchmark."
        )
    counts = Counter(task_id for task_id, _ in keys)
    most = max(counts.values())
    if lacking := _describe_lack(counts, len(wanted), most):
        if not config.partial:
            raise UsageError(
                f"{config.samples_file}: has {lacking} of {selected.benchmark.name}. "
                "Give the whole file, or --partial to score what it has."
            )
        reporter.note(f"{config.samples_file}: has {lacking} of {selected.benchmark.name}")
    problems = tuple(p for p in selected.benchmark.problems if p.task_id in counts)
    benchmark = dataclasses.replace(selected.benchmark, problems=problems)
    form = benchmark.form_for(model.identity.prompt_form)
    return surround(benchmark, config.prompt_imports, form), model, keys


def _describe_lack(counts: Counter[str], problems: int, most: int) -> str:
    """Return what a file has if that is less than ``most`` samples of all problems."""
    if len(counts) < problems:
        return f"samples of {len(counts)} of {problems} problems"
    if fewer := sum(count < most for count in counts.values()):
        return f"fewer than {most} samples of {fewer} of {problems} problems"
    return ""
