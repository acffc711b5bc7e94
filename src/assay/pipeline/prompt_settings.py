"""Apply the options that change what a model is sent to every prompt."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from assay.errors import UsageError
from assay.models import RecordedModel, check_infilling, check_prefilling
from assay.models.options import OFF, canonical_engine_options
from assay.protocol import PromptSettings
from assay.types import Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.models import EngineOptions, Model
    from assay.pipeline.config import Sampling
    from assay.progress import Reporter
    from assay.types import Decoding, Prompt, PromptForm

DEFAULT_THINKING = "default"


def resolve_prompt_settings(
    form: PromptForm, engine: EngineOptions, system: str, stop: Iterable[str]
) -> PromptSettings:
    """Return how a model is prompted. Raise UsageError if the options contradict the form."""
    check_texts(system, stop)
    if form == "infill":
        _refuse_for_gaps(engine, system)
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


def _refuse_for_gaps(engine: EngineOptions, system: str) -> None:
    """Raise UsageError for settings that a prompt of prefix and suffix cannot have."""
    for flag, given in (
        ("--system", bool(system)),
        ("--thinking", bool(engine.thinking)),
        (f"--prompt-form {engine.prompt_form}", engine.prompt_form != "auto"),
    ):
        if given:
            raise UsageError(
                f"{flag}: the benchmark sends a prefix and a suffix, not a chat or plain text. "
                "Drop it."
            )


def refuse_for_recorded(system: str, stop: Iterable[str], decoding: Decoding) -> None:
    """Raise UsageError for settings that cannot apply to recorded completions."""
    for flag, given in (
        ("--system", system),
        ("--stop", stop),
        ("--top-p", decoding.top_p != 1),
        ("--min-p", decoding.min_p),
        ("--repetition-penalty", decoding.repetition_penalty != 1),
    ):
        if given:
            raise UsageError(f"{flag}: has no effect on recorded completions. Drop it.")


def decide_sampling(sampling: Sampling, model: Model, reporter: Reporter) -> Sampling:
    """Return the sampling with a temperature that fits the number of samples, and note it.

    Recorded completions are what they are.
    """
    if isinstance(model, RecordedModel):
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
    given = [name for name in names if getattr(sampling, name) != getattr(usual, name)]
    return [f"--{name.replace('_', '-')}" for name in given]


def describe_form(model: Model, form: PromptForm, typical: Prompt, engine: EngineOptions) -> str:
    """Return a line that says in which form a model is prompted, and why.

    Raise an error if the model cannot be given a prompt such as ``typical``: it cannot fill in
    code, or continue a prefilled answer.
    """
    identity = model.identity
    if form == "infill":
        return f"prompt form infill: {check_infilling(model)}"
    if identity.prompt_form == "chat" and typical.prefill:
        if engine.thinking not in ("", OFF):
            raise UsageError(
                f"--thinking {engine.thinking}: the prompt strategy prefills the answer, so that "
                "the model cannot think before. Use --thinking off or another strategy."
            )
        check_prefilling(model)
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
