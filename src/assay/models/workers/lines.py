"""Exchange the lines that ``engine_messages`` describes, on the worker's side."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, TypeVar

import numpy as np

from assay.data import codec
from assay.models.devices import proc_bytes
from assay.models.model import Usage
from assay.models.workers.engine_messages import (
    TO_WORKER,
    AskUsage,
    EngineWorkerSettings,
    Fatal,
    Generated,
    LogprobsReply,
    Pause,
    Ready,
    Score,
    Scoring,
    Tokenize,
    TokensReply,
    decode,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from assay.models.model import EngineFacts


S = TypeVar("S", bound=EngineWorkerSettings)
MIB = 1 << 20
REPORT_S = 1.0  # between two reports of tokens


class Lines(Generic[S]):
    """The harness's messages, and replies to them from any thread.

    The input is read from the start. Its end ends the process, even while it loads, because the
    harness has ended. Pauses tell workers that wait for a fuller batch to continue. ``kinds`` are
    those of the engine's own messages.
    """

    def __init__(
        self, settings: type[S], kinds: tuple[type, ...] = (), *, pauses: bool = False
    ) -> None:
        self._kinds, self._pauses = (*TO_WORKER, *kinds), pauses
        self._gpu_peak: Callable[[], int] | None = None
        self._replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # an engine's output must not mix with the replies
        self._lock = threading.Lock()
        self._generated, self._reported = 0, time.monotonic()
        if not (first := sys.stdin.readline()):
            os._exit(0)  # the harness has ended, or needs no model
        self.settings: S = codec.from_json(settings, json.loads(first))
        self.requests: queue.SimpleQueue[Any] = queue.SimpleQueue()  # of these kinds
        threading.Thread(target=self._listen, daemon=True).start()

    def ready(
        self,
        facts: EngineFacts,
        *,
        used_gpu: bool,
        in_hand: int,
        scoring: Scoring | None = None,
        gpu_peak: Callable[[], int] | None = None,
    ) -> None:
        """Report that the model is loaded. ``gpu_peak`` returns the process's peak of GPU bytes."""
        self._gpu_peak = gpu_peak if used_gpu else None
        self.reply(facts)
        self.reply(Ready(used_gpu, in_hand, scoring))

    @contextlib.contextmanager
    def ending_on(self, kind: type[Exception]) -> Iterator[None]:
        """End with the reason if such an error occurs inside."""
        try:
            yield
        except kind as error:
            self.fatal(error)

    def fatal(self, error: Exception) -> NoReturn:
        """Report in one line why the model cannot be loaded or run, and end."""
        lines = str(error).strip().splitlines()
        self.reply(Fatal(lines[0] if lines else type(error).__name__))
        os._exit(0)

    def reply(self, message: object) -> None:
        line = encode(message)
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._replies.write(line)
            self._replies.flush()

    def count(self, tokens: int) -> None:
        """Count generated tokens, and report their number at most once a second."""
        with self._lock:
            self._generated += tokens
            total, now = self._generated, time.monotonic()
            if now - self._reported < REPORT_S:
                return
            self._reported = now
        self.reply(Generated(total))

    def _listen(self) -> None:
        for line in sys.stdin:
            message = decode(line, self._kinds)
            if isinstance(message, AskUsage):
                self.reply(self._usage())
            elif self._pauses or not isinstance(message, Pause):
                self.requests.put(message)
        os._exit(0)

    def _usage(self) -> Usage:
        on_gpu = None if self._gpu_peak is None else round(self._gpu_peak() / MIB, 1)
        # getrusage would include the harness's memory at the start of this process.
        return Usage(round(proc_bytes("/proc/self/status", "VmHWM") / MIB, 1), on_gpu)


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
        if isinstance(question, Score):
            return _score(engine, question, context)
        tokens = engine.tokenize(question.text, special=question.special)
        return TokensReply(tuple(tokens), engine.bytes_of(tokens[0]) if tokens else 0)
    except Exception as error:
        kind = TokensReply if isinstance(question, Tokenize) else LogprobsReply
        return kind(error=str(error) or type(error).__name__)


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
    logprobs = engine.logprobs(sequences, min(question.last or shortest, shortest - 1))
    return LogprobsReply(tuple(map(tuple, logprobs)))


def logprobs_of(logits: NDArray[np.float32], tokens: Sequence[int]) -> list[float]:
    """Return each token's log-probability by the row before it. Long sums use double precision."""
    logprobs = []
    for row, token in zip(logits, tokens, strict=True):
        top = row.max()
        total = np.exp(row - top).sum(dtype=np.float64)
        logprobs.append(float(row[token] - top) - float(np.log(total)))
    return logprobs
