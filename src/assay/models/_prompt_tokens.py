"""A prompt as the tokens that a model is given."""

from __future__ import annotations

from typing import Any


def prompt_text(tokenizer: Any, prompt: dict[str, Any]) -> str:
    """Messages by the chat template, which says what stands at the end; a text as it is."""
    if not prompt["messages"]:
        return str(prompt["text"])
    return str(
        tokenizer.apply_chat_template(
            prompt["messages"], tokenize=False, add_generation_prompt=True
        )
    )


def prompt_tokens(tokenizer: Any, prompt: dict[str, Any]) -> list[int]:
    """Special tokens that the prompt spells out itself are not added once more."""
    text = prompt_text(tokenizer, prompt)
    spelt_out = bool(tokenizer.bos_token) and text.startswith(tokenizer.bos_token)
    tokens: list[int] = tokenizer.encode(
        text, add_special_tokens=not (prompt["messages"] or spelt_out)
    )
    return tokens


def rendered(tokenizer: Any, message: dict[str, Any]) -> dict[str, Any]:
    """The reply to a question how a prompt is given to the model."""
    prompt, error = message["render"], None
    text, tokens = "", []
    try:
        text, tokens = prompt_text(tokenizer, prompt), prompt_tokens(tokenizer, prompt)
    except Exception as failure:  # a template may refuse a conversation in any way
        error = f"it cannot be rendered: {failure}"
    pieces = [tokenizer.decode([token], clean_up_tokenization_spaces=False) for token in tokens]
    answer = {"text": text, "tokens": tokens, "pieces": pieces}
    return {"id": message["id"], "rendered": answer, "error": error}
