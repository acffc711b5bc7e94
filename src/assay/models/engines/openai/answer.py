"""Collect a server's answer chunk by chunk."""

from __future__ import annotations

import statistics
from typing import Any

MOST_TOKENS = 1 << 40  # the largest token count that is accepted from a server


class PartialCompletion:
    """A completion that grows. ``finish_reason`` is empty until it is complete."""

    def __init__(self, most_characters: int) -> None:
        self._characters_left = most_characters
        self.finish_reason = ""
        self.prompt_tokens = 0
        self.tokens_generated = 0
        self._reasoning: list[str] = []
        self._texts: list[str] = []
        self._logprobs: list[float] = []

    def add(self, message: Any) -> None:
        """Add a chunk of a stream, or the whole answer. Raise ValueError if it is neither."""
        try:
            message = _as_choice(message)
            choices = message.get("choices") or []
            if len(choices) > 1:
                raise ValueError(f"{len(choices)} choices instead of one")
            for choice in choices:
                self._add(choice)
            if usage := message.get("usage"):
                self.prompt_tokens = _count(usage, "prompt_tokens")
                self.tokens_generated = _count(usage, "completion_tokens")
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"unknown answer format ({error})") from error

    @property
    def text(self) -> str:
        """Return the text, preceded by the reasoning that some servers return separately."""
        said, reasoning = "".join(self._texts), "".join(self._reasoning)
        return f"<think>{reasoning}</think>\n{said}" if reasoning else said

    @property
    def logprob(self) -> float | None:
        return statistics.fmean(self._logprobs) if self._logprobs else None

    def _add(self, choice: Any) -> None:
        if choice.get("index"):
            raise ValueError("a second choice, but one was requested")
        said = choice.get("delta") or choice.get("message") or {}
        # Two names for one field. Servers that use both send the text twice.
        reasoning = _text(said.get("reasoning_content") or said.get("reasoning"))
        text = _text(choice.get("text") or said.get("content"))
        self._characters_left -= len(reasoning) + len(text)
        if self._characters_left < 0:
            raise ValueError("more text than the requested number of tokens can have")
        self._reasoning.append(reasoning)
        self._texts.append(text)
        self.finish_reason = _text(choice.get("finish_reason")) or self.finish_reason
        scores = choice.get("logprobs") or {}
        tokens = scores.get("token_logprobs") or [t["logprob"] for t in scores.get("content") or []]
        self._logprobs += [_logprob(value) for value in tokens if value is not None]


def _as_choice(message: Any) -> Any:
    """Return a message of llama.cpp's ``/infill`` in the form of completions, others unchanged."""
    if "content" not in message or "choices" in message:
        return message
    usage = None
    finish_reason = ""
    if message.get("stop"):
        finish_reason = "length" if message.get("stop_type") == "limit" else "stop"
        usage = {
            "prompt_tokens": message.get("tokens_evaluated"),
            "completion_tokens": message.get("tokens_predicted"),
        }
    choice = {"text": message["content"], "finish_reason": finish_reason}
    return {"choices": [choice], "usage": usage}


def _count(usage: Any, name: str) -> int:
    """Return a number of tokens. Raise ValueError if it is not one."""
    value = usage.get(name)
    if value is None:
        return 0
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_TOKENS:
        raise ValueError(f"{name} is {_quote(value)}")
    return value


def _logprob(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a log-probability expected, found {type(value).__name__}")
    if not -MOST_TOKENS <= value <= MOST_TOKENS:  # also true for NaN
        raise ValueError(f"a log-probability is {_quote(value)}")
    return float(value)


def _quote(value: Any) -> str:
    """Return a value short enough for a message. A number may have thousands of digits."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"text expected, found {type(value).__name__}")
    return value
