"""What a server answers, gathered chunk by chunk."""

from __future__ import annotations

import statistics
from typing import Any

# Far beyond any completion: a server that does not stop must not fill the memory.
MOST_BYTES = 1 << 26


class Answer:
    """A completion that grows; ``finish_reason`` is empty until it is whole."""

    def __init__(self) -> None:
        self.finish_reason = ""
        self.prompt_tokens = 0
        self.tokens_generated = 0
        self._reasoning: list[str] = []
        self._texts: list[str] = []
        self._logprobs: list[float] = []

    def add(self, message: Any) -> None:
        """A chunk of a stream, or the whole answer at once; ValueError if it is neither."""
        try:
            for choice in message.get("choices") or []:
                self._add(choice)
            if usage := message.get("usage"):
                self.prompt_tokens = int(usage.get("prompt_tokens") or 0)
                self.tokens_generated = int(usage.get("completion_tokens") or 0)
        except (AttributeError, KeyError, OverflowError, TypeError) as error:
            raise ValueError(f"an answer of unknown shape ({error})") from error

    @property
    def text(self) -> str:
        """With the reasoning that some servers take out of it put back in front."""
        said, reasoning = "".join(self._texts), "".join(self._reasoning)
        return f"<think>{reasoning}</think>\n{said}" if reasoning else said

    @property
    def logprob(self) -> float | None:
        return statistics.fmean(self._logprobs) if self._logprobs else None

    def _add(self, choice: Any) -> None:
        said = choice.get("delta") or choice.get("message") or {}
        # Two names for one thing; servers that use both send it twice.
        self._reasoning.append(_text(said.get("reasoning_content") or said.get("reasoning")))
        self._texts.append(_text(choice.get("text") or said.get("content")))
        self.finish_reason = _text(choice.get("finish_reason")) or self.finish_reason
        told = choice.get("logprobs") or {}
        tokens = told.get("token_logprobs") or [t["logprob"] for t in told.get("content") or []]
        self._logprobs += [float(value) for value in tokens if value is not None]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"text expected, found {type(value).__name__}")
    return value
