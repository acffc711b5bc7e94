"""Read what a server answers: its list of models, and completions chunk by chunk."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.models.options import NamedValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from assay.models import EngineOptions


SECONDS_PER_TOKEN = 1.0  # slower than any server that a run would wait for
# One chunk of a stream per token: 300 bytes at vLLM, up to 1,000 with log-probabilities.
BYTES_PER_TOKEN, MORE_BYTES = 4096, 1 << 20
# The longest tokens of the large vocabularies have 128 characters.
CHARACTERS_PER_TOKEN, MORE_CHARACTERS = 512, 4096
LISTING_S = 60.0
LISTING_BYTES = 1 << 23  # the longest listings of hosted services have a million
# Facts about a model that a restart of the server does not change. ``created`` changes.
LASTING = ("root", "owned_by")
LASTING_META = ("n_params", "n_vocab", "n_embd", "size")  # llama.cpp's
MOST_TOKENS = 1 << 40  # the largest token count that is accepted from a server


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Limits of one answer; an answer beyond one of them is a failed one."""

    seconds: float
    bytes: int
    characters: int = 0


LISTING = AnswerLimits(LISTING_S, LISTING_BYTES)


def answer_limits(max_tokens: int, options: EngineOptions) -> AnswerLimits:
    """Return the limits for a completion of up to ``max_tokens``."""
    return AnswerLimits(
        options.answer_timeout or options.timeout + max_tokens * SECONDS_PER_TOKEN,
        MORE_BYTES + max_tokens * BYTES_PER_TOKEN,
        MORE_CHARACTERS + max_tokens * CHARACTERS_PER_TOKEN,
    )


def events(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the text after each ``data:``. Yield an event cut off by the end as far as it came.

    Lines end at line feeds alone: JSON may hold the other characters that Python splits lines at.
    """
    data: list[bytes] = []
    for line in _lines(pieces):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            yield b"\n".join(data)
            data = []
    if data:
        yield b"\n".join(data)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    begun: list[bytes] = []
    for piece in pieces:
        first, *rest = piece.split(b"\n")
        begun.append(first)
        for line in rest:
            yield b"".join(begun).removesuffix(b"\r")
            begun = [line]
    yield b"".join(begun).removesuffix(b"\r")


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A listed model. ``lasting`` holds the facts that a restart of the server does not change."""

    name: str
    lasting: tuple[NamedValue, ...] = ()


def parse_listing(answer: Any) -> list[ListedModel]:
    """Parse the models out of an answer in any of several shapes. Skip other entries."""
    listed = answer.get("data") if isinstance(answer, dict) else answer
    if not isinstance(listed, list):
        return []
    return [
        ListedModel(model["id"], _lasting(model))
        for model in listed
        if isinstance(model, dict) and isinstance(model.get("id"), str)
    ]


def _lasting(answer: Any) -> tuple[NamedValue, ...]:
    meta = answer.get("meta")
    about = meta if isinstance(meta, dict) else {}
    facts = [(name, answer[name]) for name in LASTING if name in answer]
    facts += [(name, about[name]) for name in LASTING_META if name in about]
    return tuple(NamedValue(name, json.dumps(value)) for name, value in facts)


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
        message = choice.get("delta") or choice.get("message") or {}
        # Two names for one field. Servers that use both send the text twice.
        reasoning = _text(message.get("reasoning_content") or message.get("reasoning"))
        text = _text(choice.get("text") or message.get("content"))
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
