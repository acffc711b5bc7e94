"""Messages between the harness and an engine's process: one JSON line each, {"Kind": {…}}.

The first line to a process has its settings, without a kind. Engines have their own types for
these and for their facts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from assay.data import codec
from assay.formats.marks import Gap
from assay.models.model import Rendered, Usage
from assay.models.options import EngineOptions
from assay.types import Prompt, Request


@dataclass(frozen=True, slots=True)
class EngineWorkerSettings:
    """Settings that a process gets before it loads. Engines add their own fields.

    ``options`` are the user's, with what the engine chose in their place: device, number format.
    """

    path: str
    options: EngineOptions = EngineOptions()  # noqa: RUF009 - frozen
    template: str = ""  # of chats; empty if prompts are plain text


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for a completion. Answers arrive in any order, with the same id."""

    id: int
    request: Request
    gap: Gap | None = None  # how the model marks what a prompt with a suffix lacks


@dataclass(frozen=True, slots=True)
class Render:
    """A question how the model is given this prompt. ``RenderReply`` answers."""

    prompt: Prompt
    gap: Gap | None = None


@dataclass(frozen=True, slots=True)
class AskUsage:
    """A question about the memory that the process has used. ``Usage`` answers."""


@dataclass(frozen=True, slots=True)
class Pause:
    """News that no request follows for now, so none need wait for a fuller batch."""


@dataclass(frozen=True, slots=True)
class Tokenize:
    """A text to split; ``special``: marks in it are tokens. ``TokensReply`` answers."""

    text: str
    special: bool


@dataclass(frozen=True, slots=True)
class Score:
    """A question about log-probabilities of the last tokens (0: all), or all logits.

    ``LogprobsReply`` answers. Logits of the one sequence are written to the path ``logits``.
    """

    sequences: tuple[tuple[int, ...], ...]
    last: int = 0
    logits: str = ""


@dataclass(frozen=True, slots=True)
class Scoring:
    """Limits of a process that scores: tokens per sequence, and sequences per question."""

    context: int
    at_once: int


@dataclass(frozen=True, slots=True)
class Ready:
    """News that the model is loaded. The facts of the engine precede this message.

    ``in_hand`` is the number of requests it needs so that no sequence is ever idle; 0 if it was
    started only to score. ``scoring`` is None if it answers no questions about tokens.
    """

    used_gpu: bool
    in_hand: int
    scoring: Scoring | None = None


@dataclass(frozen=True, slots=True)
class Fatal:
    """The reason why the process ends, now or later."""

    reason: str


@dataclass(frozen=True, slots=True)
class Generated:
    """The number of tokens so far, reported now and then."""

    tokens: int


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to ``Ask``. There is no text if there is an error."""

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
    """The tokens of a text. The first has no probability, since nothing precedes it."""

    ids: tuple[int, ...] = ()
    first_bytes: int = 0  # of the first token's text; 0 if it is a special token
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
    """Return the line for a message."""
    return json.dumps({type(message).__name__: codec.to_json(message)}) + "\n"


def decode(line: str, kinds: tuple[type, ...]) -> Any:
    """Return the message in a line. Raise ValueError unless it is of one of these kinds."""
    ((name, content),) = json.loads(line).items()
    for kind in kinds:
        if kind.__name__ == name:
            return codec.from_json(kind, content)
    raise ValueError(f"a line of unknown kind {name}")
