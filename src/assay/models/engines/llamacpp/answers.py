"""Collect what llama.cpp streams for the samples of one prompt."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.models.model import describe_llama_error
from assay.models.workers.engine_messages import Reply


@dataclass(slots=True)
class _Sample:
    id: int
    texts: list[str] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish_reason: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    is_reported: bool = False


class SampleCollector:
    """The samples with these ids. It holds the prefill lock until the first token has arrived.

    ``tell`` gets each sample's reply as soon as it is finished.
    """

    def __init__(
        self,
        ids: Sequence[int],
        prefill: threading.Lock,
        tell: Callable[[Reply], None],
        model_context: int,
        count_tokens: Callable[[int], None],
    ) -> None:
        self._model_context = model_context
        self._samples = [_Sample(number) for number in ids]
        self._finished = 0  # the sample that finished last
        self._prefill: threading.Lock | None = prefill
        self._tell, self._count_tokens = tell, count_tokens
        self._error = ""
        prefill.acquire()
        self._started = time.perf_counter()

    def add(self, chunk: dict[str, Any]) -> bool:
        self._release()
        if "choices" not in chunk:
            error = chunk.get("error", chunk)
            text = str(error.get("message", error)) if isinstance(error, dict) else str(error)
            self.fail(describe_llama_error(text, self._model_context))
        for choice in chunk.get("choices", []):
            number = choice.get("index", 0)
            sample = self._samples[number]
            text = choice.get("text") or choice.get("delta", {}).get("content") or ""
            sample.texts.append(text)
            if text:
                self._count_tokens(1)  # approximate: several tokens can make one character
            tokens = (choice.get("logprobs") or {}).get("content", [])
            sample.logprobs += [token["logprob"] for token in tokens]
            if reason := choice.get("finish_reason"):
                sample.finish_reason, self._finished = reason, number
        if usage := chunk.get("usage"):  # arrives right after a sample's last piece
            self._samples[self._finished].usage = usage
            self._conclude(self._finished)
        return False  # go on

    def fail(self, reason: str) -> None:
        self._error = reason or "llama.cpp gave no reason"

    def end(self) -> None:
        """Send the replies of all samples that have none yet: nothing more will arrive."""
        self._release()
        for number in range(len(self._samples)):
            self._conclude(number)

    def _release(self) -> None:
        if self._prefill is not None:
            self._prefill.release()
            self._prefill = None

    def _conclude(self, number: int) -> None:
        sample = self._samples[number]
        if sample.is_reported:
            return
        sample.is_reported = True
        error = "" if sample.finish_reason else self._error or "llama.cpp ended the answer early"
        reply = Reply(
            id=sample.id,
            text="".join(sample.texts),
            finish_reason="length" if sample.finish_reason == "length" else "stop",
            prompt_tokens=sample.usage.get("prompt_tokens", 0),
            tokens_generated=sample.usage.get("completion_tokens", 0),
            ms=round((time.perf_counter() - self._started) * 1000, 3),
            logprob=statistics.fmean(sample.logprobs) if sample.logprobs else None,
            error=error or None,
        )
        self._tell(reply)
