"""Recognise a prompt that is longer than the model's context in the errors of every engine."""

from __future__ import annotations

import re

# Ours (hf); vLLM; OpenAI and servers that speak like it; llama.cpp's server.
MESSAGES = re.compile(
    r"the prompt has \d+ tokens, the model's context \d+"
    r"|prompt \(length \d+\) is longer than the maximum model length"
    r"|context_length_exceeded"
    r"|maximum (context|model) length (is|of) \d+"
    r"|exceeds the available context size",
    re.IGNORECASE,
)
CONTEXT = re.compile(r"maximum (?:context|model) length (?:is|of) (\d{1,12})", re.IGNORECASE)
OF_PROMPT = re.compile(r"(\d{1,12}) (?:(?:of|in|the|your|text) )*(?:messages|prompt|input)\b")
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
LLAMA_CPP = re.compile(r"request \((\d+) tokens\) exceeds the available context size")


def is_too_long(error: str) -> bool:
    """Return whether an engine's error says that the prompt does not fit the model's context.

    Servers report the same for a prompt that fits alone, but not together with --max-tokens. That
    is the user's setting, not the model's failure.
    """
    if MESSAGES.search(error) is None:
        return False
    plain = THOUSANDS.sub("", error)
    context, prompt = CONTEXT.search(plain), OF_PROMPT.search(plain)
    return context is None or prompt is None or int(prompt[1]) >= int(context[1])


def describe_llama_error(error: str, model_context: int) -> str:
    """Return llama.cpp's error, reworded if the prompt fits the model but not assay's setting."""
    found = LLAMA_CPP.search(error)
    if found is None or int(found[1]) >= model_context:
        return error
    return f"the prompt has {found[1]} tokens, more than were reserved for it here"
