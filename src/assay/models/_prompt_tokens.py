"""A prompt as the tokens that a model is given."""

from __future__ import annotations

from typing import Any


def prompt_tokens(tokenizer: Any, prompt: dict[str, Any]) -> list[int]:
    """Of messages by the chat template, or of a text.

    Special tokens that the prompt spells out itself are not added once more.
    """
    if prompt["messages"]:
        text = tokenizer.apply_chat_template(
            prompt["messages"], tokenize=False, add_generation_prompt=True
        )
        bare = True
    else:
        text = prompt["text"]
        bare = bool(tokenizer.bos_token) and text.startswith(tokenizer.bos_token)
    tokens: list[int] = tokenizer.encode(text, add_special_tokens=not bare)
    return tokens
