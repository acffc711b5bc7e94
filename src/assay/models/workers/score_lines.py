"""Answer questions about given tokens with a worker's engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from assay.models.workers.messages import LogprobsReply, Score, Tokenize, TokensReply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class ScoringEngine(Protocol):
    def tokenize(self, text: str, *, special: bool) -> list[int]: ...

    def bytes_of(self, token: int) -> int: ...

    def logits(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Return logits after every token."""
        ...

    def logprobs(self, sequences: Sequence[Sequence[int]], last: int) -> list[list[float]]:
        """Return log-probabilities of the last tokens of each sequence, never of its first."""
        ...


def answer_question(
    engine: ScoringEngine, question: Tokenize | Score, context: int
) -> TokensReply | LogprobsReply:
    """Return a reply in every case: without one the harness would wait forever."""
    try:
        if isinstance(question, Tokenize):
            return _tokenize(engine, question)
        return _score(engine, question, context)
    except Exception as error:
        kind = TokensReply if isinstance(question, Tokenize) else LogprobsReply
        return kind(error=str(error) or type(error).__name__)


def _tokenize(engine: ScoringEngine, question: Tokenize) -> TokensReply:
    tokens = engine.tokenize(question.text, special=question.special)
    return TokensReply(tuple(tokens), engine.bytes_of(tokens[0]) if tokens else 0)


def _score(engine: ScoringEngine, question: Score, context: int) -> LogprobsReply:
    sequences = question.sequences
    if longest := [len(tokens) for tokens in sequences if len(tokens) > context]:
        raise ValueError(f"{longest[0]} tokens do not fit into {context}")
    if question.logits:
        np.save(question.logits, engine.logits(sequences[0]))
        return LogprobsReply()
    shortest = min(map(len, sequences))
    if shortest < 2:
        raise ValueError("a single token has no probability")
    found = engine.logprobs(sequences, min(question.last or shortest, shortest - 1))
    return LogprobsReply(tuple(map(tuple, found)))


def logprobs_of(logits: NDArray[np.float32], tokens: Sequence[int]) -> list[float]:
    """Return each token's log-probability by the row before it. Long sums use double precision."""
    found = []
    for row, token in zip(logits, tokens, strict=True):
        top = row.max()
        total = np.exp(row - top).sum(dtype=np.float64)
        found.append(float(row[token] - top) - float(np.log(total)))
    return found
