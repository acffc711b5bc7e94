"""A prompt as the tokens that a model is given."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from assay.models.settings import SWITCHES, switched
from assay.models.workers.template_process import TemplateLimitError, TemplateProcess

if TYPE_CHECKING:
    from collections.abc import Callable

    Render = Callable[[Any], str]


PROBE = [{"role": "user", "content": "hello"}]


def template_of(tokenizer: Any, variables: dict[str, Any] | None = None) -> Render:
    """Return what makes a text of messages, up to where the model begins to answer."""

    def apply(messages: Any) -> str:
        return str(
            tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **(variables or {})
            )
        )

    return apply


def template_process(tokenizer: Any, settings: dict[str, Any]) -> TemplateProcess:
    """Return what renders prompts with a worker's settings; ValueError if it cannot switch."""
    if settings["thinking"]:

        def render(variables: dict[str, Any]) -> str:
            with contextlib.closing(TemplateProcess(template_of(tokenizer, variables))) as process:
                return process.render(PROBE)

        check_switch(render)
    return TemplateProcess(template_of(tokenizer, settings["variables"]))


def check_switch(render: Callable[[dict[str, Any]], str]) -> None:
    """Raise ValueError if a chat template renders the same text with thinking on and off."""
    if render(switched(True)) == render(switched(False)):
        raise ValueError(
            f"its chat template has no switch for thinking ({' or '.join(SWITCHES)}). "
            "Drop --thinking."
        )


def prompt_text(render: Render, prompt: dict[str, Any]) -> str:
    """Messages by the chat template, which says what stands at the end; a text as it is."""
    return render(prompt["messages"]) if prompt["messages"] else str(prompt["text"])


def prompt_tokens(tokenizer: Any, render: Render, prompt: dict[str, Any]) -> list[int]:
    """Special tokens that the prompt spells out itself are not added once more."""
    text = prompt_text(render, prompt)
    spelt_out = bool(tokenizer.bos_token) and text.startswith(tokenizer.bos_token)
    tokens: list[int] = tokenizer.encode(
        text, add_special_tokens=not (prompt["messages"] or spelt_out)
    )
    return tokens


def rendered(tokenizer: Any, render: Render, message: dict[str, Any]) -> dict[str, Any]:
    """The reply to a question how a prompt is given to the model."""
    prompt, error = message["render"], None
    text, tokens = "", []
    try:
        text, tokens = prompt_text(render, prompt), prompt_tokens(tokenizer, render, prompt)
    except TemplateLimitError:
        raise
    except Exception as failure:  # a template may refuse a conversation in any way
        error = f"it cannot be rendered: {failure}"
    pieces = [tokenizer.decode([token], clean_up_tokenization_spaces=False) for token in tokens]
    answer = {"text": text, "tokens": tokens, "pieces": pieces}
    return {"id": message["id"], "rendered": answer, "error": error}
