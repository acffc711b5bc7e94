"""Apply the options that change what a model is sent, and build the prompt of one problem."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay import benchmarks, models
from assay.errors import UsageError
from assay.models.options import OFF, canonical_engine_options
from assay.prompts import check_strategy_name, find_strategy
from assay.protocol import PromptSettings
from assay.types import Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.models import EngineOptions, Model, Rendered
    from assay.pipeline.config import Sampling
    from assay.progress import Reporter
    from assay.types import Benchmark, Decoding, Problem, Prompt, PromptForm

DEFAULT_THINKING = "default"


def resolve_prompt_settings(
    form: PromptForm, engine: EngineOptions, system: str, stop: Iterable[str]
) -> PromptSettings:
    """Return how a model is prompted. Raise UsageError if the options contradict the form."""
    check_texts(system, stop)
    if form == "infill":
        _refuse(
            "the benchmark sends a prefix and a suffix, not a chat or plain text. Drop it.",
            ("--system", system),
            ("--thinking", engine.thinking),
            (f"--prompt-form {engine.prompt_form}", engine.prompt_form != "auto"),
        )
    if system and form == "text":
        raise UsageError(
            "--system: the prompt form is text, which has no messages. "
            "Use --prompt-form chat, or drop --system."
        )
    return PromptSettings(
        prompt_form=form,
        chat_template="own" if form == "chat" else "none",
        system=system,
        thinking=engine.thinking or DEFAULT_THINKING,
        stop=tuple(sorted(set(stop))),
        engine_options=canonical_engine_options(engine.engine_options),
    )


def refuse_for_recorded(system: str, stop: Iterable[str], decoding: Decoding) -> None:
    """Raise UsageError for settings that cannot apply to recorded completions."""
    _refuse(
        "has no effect on recorded completions. Drop it.",
        ("--system", system),
        ("--stop", stop),
        ("--top-p", decoding.top_p != 1),
        ("--min-p", decoding.min_p),
        ("--repetition-penalty", decoding.repetition_penalty != 1),
    )


def _refuse(why: str, *settings: tuple[str, object]) -> None:
    """Raise UsageError for the first option that has a value."""
    if flag := next((flag for flag, value in settings if value), None):
        raise UsageError(f"{flag}: {why}")


def decide_sampling(sampling: Sampling, model: Model, reporter: Reporter) -> Sampling:
    """Return the sampling with a temperature that fits the number of samples, and note it.

    Recorded completions are what they are.
    """
    if isinstance(model, models.RecordedModel):
        return sampling
    decided, note = sampling.decide()
    if note:
        reporter.note(note)
    return decided


def unused_for_recorded(sampling: Sampling) -> list[str]:
    """Return the given options that have no effect on recorded completions.

    They are not errors, because a preset sets some of them together with the number of samples.
    """
    usual = type(sampling)()
    names = ("temperature", "top_k", "max_tokens", "seed")
    changed = [name for name in names if getattr(sampling, name) != getattr(usual, name)]
    return [f"--{name.replace('_', '-')}" for name in changed]


def describe_form(model: Model, form: PromptForm, typical: Prompt, engine: EngineOptions) -> str:
    """Return a line that says in which form a model is prompted, and why.

    Raise an error if the model cannot be given a prompt such as ``typical``: it cannot fill in
    code, or continue a prefilled answer.
    """
    identity = model.identity
    if form == "infill":
        return f"prompt form infill: {models.check_infilling(model)}"
    if identity.prompt_form == "chat" and typical.prefill:
        if engine.thinking not in ("", OFF):
            raise UsageError(
                f"--thinking {engine.thinking}: the prompt strategy prefills the answer, so that "
                "the model cannot think before. Use --thinking off or another strategy."
            )
        models.check_prefilling(model)
        return "prompt form chat: the model's own chat template is used, its answer is prefilled"
    if identity.prompt_form == "chat":
        return "prompt form chat: the model's own chat template is used"
    if identity.template_sha256:
        return "prompt form text: the model's chat template is not used"
    return "prompt form text: the model has no chat template, so it is used as a base model"


def may_think(model: Model, form: PromptForm, typical: Prompt) -> bool:
    """Return whether the model may think before it answers prompts such as ``typical``."""
    return model.thinks and form == "chat" and not typical.prefill


def check_texts(system: str, stop: Iterable[str]) -> None:
    """Raise UsageError for a text that cannot be sent to an engine."""
    for flag, text in (("--system", system), *(("--stop", word) for word in stop)):
        if flag == "--stop" and not text:
            raise UsageError("--stop: the text is empty. Give one that ends a completion.")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"{flag}: not UTF-8. Give another text.") from error
        if "\0" in text:
            raise UsageError(f"{flag}: contains a NUL character. Give another text.")


def complete_prompt(prompt: Prompt, settings: PromptSettings) -> Prompt:
    """Return the prompt with the system message and the stop words of the options.

    If the prompt has its own system message, that one is used alone.
    """
    messages = prompt.messages
    if settings.system and messages and messages[0].role != "system":
        messages = (Message("system", settings.system), *messages)
    more = tuple(word for word in settings.stop if word not in prompt.stop)
    return replace(prompt, messages=messages, stop=prompt.stop + more)


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
    """The prompt of a problem, and what a model gets for it."""

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
        _refuse(
            "needs --model. Give the model to render the prompt for.",
            ("--thinking", config.engine.thinking),
            ("--revision", config.engine.revision),
            ("--engine-option", config.engine.engine_options),
        )
        chosen = config.engine.prompt_form
        form = benchmark.form_for("chat" if chosen == "auto" else chosen)
        return ProblemPrompt(problem.task_id, _complete(build(problem, form), form, config), None)
    with contextlib.closing(models.open_model(config.model, config.engine, reporter.note)) as model:
        form = benchmark.form_for(model.identity.prompt_form)
        prompt = _complete(build(problem, form), form, config)
        if prompt.prefill:
            describe_form(model, form, prompt, config.engine)  # or raise an error
        return ProblemPrompt(problem.task_id, prompt, model.render(prompt))


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
