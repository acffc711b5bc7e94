"""What travels between the harness and an engine's process: one JSON line each, {"Kind": {…}}.

The first line to a process has its settings, without a kind. Engines have types of their own for
these and for their facts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from assay import codec
from assay.models.model import Rendered, Usage
from assay.models.named_values import NamedValue
from assay.types import Prompt, Request


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a process is told before it loads; engines add their own fields."""


@dataclass(frozen=True, slots=True)
class TemplateSettings:
    """What a process must know to render the chat template."""

    thinking: str = ""  # as in EngineOptions
    variables: tuple[NamedValue, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """A completion to be made. Answers come in any order, with the same id."""

    id: int
    request: Request


@dataclass(frozen=True, slots=True)
class Render:
    """The question how the model is given this prompt; ``RenderReply`` answers it."""

    prompt: Prompt


@dataclass(frozen=True, slots=True)
class AskUsage:
    """The question how much memory the process has taken; ``Usage`` answers it."""


@dataclass(frozen=True, slots=True)
class Pause:
    """No request follows for now: none need wait for company."""


@dataclass(frozen=True, slots=True)
class Tokenize:
    """A text to be split; ``special``: marks in the text are tokens. ``TokensReply`` answers it."""

    text: str
    special: bool


@dataclass(frozen=True, slots=True)
class Score:
    """The question for log-probabilities of the last tokens (0: all), or for all logits.

    ``LogprobsReply`` answers it; logits of the one sequence are written to the path ``logits``.
    """

    sequences: tuple[tuple[int, ...], ...]
    last: int = 0
    logits: str = ""


@dataclass(frozen=True, slots=True)
class Scoring:
    """How a process scores given tokens: tokens of a sequence at most, and sequences at once."""

    context: int
    at_once: int


@dataclass(frozen=True, slots=True)
class Ready:
    """The model is loaded; the facts of the engine came before this.

    ``in_hand`` is how many requests it wants to hold, so that none of its sequences is ever idle; 0
    if it was started to score alone. ``scoring`` is None if it answers no questions about tokens.
    """

    used_gpu: bool
    in_hand: int
    scoring: Scoring | None = None


@dataclass(frozen=True, slots=True)
class Fatal:
    """The process ends, now or later, and this is why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Generated:
    """Tokens so far, now and then."""

    tokens: int


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to ``Ask``; without a text if there is an error."""

    id: int
    text: str = ""
    finish_reason: Literal["stop", "length"] = "stop"
    prompt_tokens: int = 0
    tokens_generated: int = 0
    ms: float = 0.0
    logprob: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RenderReply:
    rendered: Rendered
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TokensReply:
    ids: tuple[int, ...] = ()
    first_bytes: int = 0  # of the text that the first token stands for
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LogprobsReply:
    logprobs: tuple[tuple[float, ...], ...] = ()
    error: str | None = None


# Questions and replies that every engine may send; a list for ``decode``.
TO_WORKER: tuple[type, ...] = (Ask, Render, AskUsage, Pause, Tokenize, Score)
TO_HARNESS: tuple[type, ...] = (
    Ready, Fatal, Generated, Reply, RenderReply, Usage, TokensReply, LogprobsReply,
)  # fmt: skip


def encode(message: object) -> str:
    """Return the line of a message."""
    return json.dumps({type(message).__name__: codec.to_json(message)}) + "\n"


def decode(line: str, kinds: tuple[type, ...]) -> Any:
    """Return the message of a line, which is of one of these kinds; ValueError if it is not."""
    ((name, content),) = json.loads(line).items()
    for kind in kinds:
        if kind.__name__ == name:
            return codec.from_json(kind, content)
    raise ValueError(f"a line of the unknown kind {name}")
