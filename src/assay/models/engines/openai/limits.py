"""Limit how much of an answer is read: seconds, bytes and characters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.models import EngineOptions

SECONDS_PER_TOKEN = 1.0  # slower than any server that a run would wait for
# One chunk of a stream per token: 300 bytes at vLLM, up to 1,000 with log-probabilities.
BYTES_PER_TOKEN, MORE_BYTES = 4096, 1 << 20
# The longest tokens of the large vocabularies have 128 characters.
CHARACTERS_PER_TOKEN, MORE_CHARACTERS = 512, 4096
LISTING_S = 60.0
LISTING_BYTES = 1 << 23  # the longest listings of hosted services have a million


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Limit one answer; an answer beyond a limit is a failed one."""

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
