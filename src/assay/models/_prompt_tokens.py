"""A prompt as the tokens that a model is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.models._template_process import TemplateLimitError

if TYPE_CHECKING:
    from collections.abc import Callable

    Render = Callable[[Any], str]


def template_of(tokenizer: Any) -> Render:
    """Return what makes a text of messages, up to where the model begins to answer."""

    def apply(messages: Any) -> str:
        return str(
            tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        )

    return apply


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
