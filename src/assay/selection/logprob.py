"""Choose the completion that the model finds likeliest, by the mean over its tokens."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from assay.errors import UsageError
from assay.selection import Candidate, Method, methods

if TYPE_CHECKING:
    from collections.abc import Sequence


def choose(candidates: Sequence[Candidate]) -> Candidate:
    return max(candidates, key=_logprob)


def _logprob(candidate: Candidate) -> float:
    if candidate.logprob is None or math.isnan(candidate.logprob):
        raise UsageError(
            f"{candidate.task_id}: sample {candidate.sample} has no log-probability. Use an engine "
            "that reports them, such as gguf, from the start (--fresh), or a file of "
            "completions with the field logprob."
        )
    return candidate.logprob


methods.register("logprob")(Method(choose, logprobs=True))
