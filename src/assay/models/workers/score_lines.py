"""A scoring worker's end of the lines that ``workers.process`` describes.

{"id", "tokenize": text, "special": …}              ->  {"id", "tokens", "first_bytes", "error"}
{"id", "score": [tokens, …], "last", "logits": path}    ->  {"id", "logprobs", "error"}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Engine(Protocol):
    def tokenize(self, text: str, *, special: bool) -> list[int]: ...

    def bytes_of(self, token: int) -> int: ...

    def logits(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """After every token."""
        ...

    def logprobs(self, sequences: list[list[int]], last: int) -> list[list[float]]:
        """Of the last tokens of each sequence, at least one of which is left out."""
        ...


def is_question(message: dict[str, Any]) -> bool:
    """Tell whether a line is for ``answered``."""
    return "tokenize" in message or "score" in message


def answered(engine: Engine, message: dict[str, Any], context: int) -> dict[str, Any]:
    """Return the reply, whatever happens: the harness would wait for ever without one."""
    reply: dict[str, Any] = {"id": message["id"], "error": None}
    try:
        answer = _tokenized if "tokenize" in message else _scored
        return reply | answer(engine, message, context)
    except Exception as error:
        return {**reply, "error": str(error) or type(error).__name__}


def _tokenized(engine: Engine, message: dict[str, Any], _: int) -> dict[str, Any]:
    tokens = engine.tokenize(message["tokenize"], special=message["special"])
    return {"tokens": tokens, "first_bytes": engine.bytes_of(tokens[0]) if tokens else 0}


def _scored(engine: Engine, message: dict[str, Any], context: int) -> dict[str, Any]:
    sequences, last = message["score"], message["last"]
    if longest := [len(tokens) for tokens in sequences if len(tokens) > context]:
        raise ValueError(f"{longest[0]} tokens do not fit into {context}")
    if message["logits"]:
        np.save(message["logits"], engine.logits(sequences[0]))
        return {"logprobs": []}
    shortest = min(map(len, sequences))
    if shortest < 2:
        raise ValueError("one token alone has no probability")
    return {"logprobs": engine.logprobs(sequences, min(last or shortest, shortest - 1))}


def logprobs_of(logits: NDArray[np.float32], tokens: Sequence[int]) -> list[float]:
    """Of each token by the row before it, in double precision where sums are long."""
    found = []
    for row, token in zip(logits, tokens, strict=True):
        top = row.max()
        total = np.exp(row - top).sum(dtype=np.float64)
        found.append(float(row[token] - top) - float(np.log(total)))
    return found
