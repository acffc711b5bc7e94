"""How a model is asked: what the options mean for every prompt, whoever builds it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from assay.errors import UsageError
from assay.models.settings import canonical_engine_options
from assay.protocol import Asking
from assay.types import Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.models import EngineOptions
    from assay.pipeline.config import Sampling
    from assay.types import Decoding, ModelIdentity, Prompt, PromptForm

DEFAULT_THINKING = "default"


def resolve_asking(
    form: PromptForm, engine: EngineOptions, system: str, stop: Iterable[str]
) -> Asking:
    """Return how a model is asked in this form; UsageError if the options contradict it."""
    check_texts(system, stop)
    if system and form == "text":
        raise UsageError(
            "--system: the model is asked in the text form, which has no messages. "
            "Use --prompt-form chat, or drop it."
        )
    return Asking(
        prompt_form=form,
        chat_template="own" if form == "chat" else "none",
        system=system,
        thinking=engine.thinking or DEFAULT_THINKING,
        stop=tuple(sorted(set(stop))),
        engine_options=canonical_engine_options(engine.engine_options),
    )


def refuse_for_recorded(system: str, stop: Iterable[str], decoding: Decoding) -> None:
    """Raise UsageError for settings that completions made elsewhere cannot be given."""
    for flag, given in (
        ("--system", system),
        ("--stop", stop),
        ("--top-p", decoding.top_p != 1),
        ("--min-p", decoding.min_p),
        ("--repetition-penalty", decoding.repetition_penalty != 1),
    ):
        if given:
            raise UsageError(f"{flag}: has no effect on recorded completions. Drop it.")


def unused_for_recorded(sampling: Sampling) -> list[str]:
    """Return the options that were given and that recorded completions leave without a meaning.

    A preset gives some of them together with the number of samples, so they are not refused.
    """
    usual = type(sampling)()
    names = ("temperature", "top_k", "max_tokens", "seed")
    given = [name for name in names if getattr(sampling, name) != getattr(usual, name)]
    return [f"--{name.replace('_', '-')}" for name in given]


def describe_form(identity: ModelIdentity) -> str:
    """Return in words in which form a model is asked, and why."""
    if identity.prompt_form == "chat":
        return "prompt form chat: the model's own chat template is used"
    if identity.template_sha256:
        return "prompt form text: the model's chat template is not used"
    return "prompt form text: the model has no chat template, so it is asked as a base model"


def check_texts(system: str, stop: Iterable[str]) -> None:
    """Raise UsageError for a text that an engine cannot be sent."""
    for flag, text in (("--system", system), *(("--stop", word) for word in stop)):
        if flag == "--stop" and not text:
            raise UsageError("--stop: the text is empty. Give one that ends a completion.")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"{flag}: is not UTF-8. Give another text.") from error
        if "\0" in text:
            raise UsageError(f"{flag}: contains a NUL character. Give another text.")


def complete_prompt(prompt: Prompt, asking: Asking) -> Prompt:
    """Return the prompt with the system message and the stop words of the options.

    A system message of the prompt's own stays the only one.
    """
    messages = prompt.messages
    if asking.system and messages and messages[0].role != "system":
        messages = (Message("system", asking.system), *messages)
    more = tuple(word for word in asking.stop if word not in prompt.stop)
    return replace(prompt, messages=messages, stop=prompt.stop + more)
