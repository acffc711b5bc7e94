"""How tokens are chosen: what was asked for, completed and checked; named sets of settings."""

from __future__ import annotations

from dataclasses import dataclass

from assay.errors import UsageError
from assay.types import Decoding

DEFAULT_TOP_K = 40
MAX_TOKENS = 512
MOST_SAMPLES = 10_000  # of a problem: each takes memory before the first is made
LARGEST = (1 << 31) - 1  # engines count in 32 bits
# For thoughts too: of 125 answers by an 8B model that thinks, the longest had about 16,000.
MAX_TOKENS_THINKING = 16_384


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings that go together; what is given beside one beats it."""

    n_samples: int
    temperature: float
    top_k: int | None


PRESETS = {
    "greedy": Preset(1, 0.0, None),
    "pass1": Preset(10, 0.8, DEFAULT_TOP_K),
    "pass10": Preset(100, 0.8, DEFAULT_TOP_K),
}


def settle(
    max_tokens: int,
    temperature: float,
    top_k: int | None,
    seed: int,
    *,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
) -> Decoding:
    """Return the settings in force; ValueError says which has no meaning.

    Greedy has one spelling, whatever seed and cuts were given; a repetition penalty changes it.
    """
    if not 1 <= max_tokens <= LARGEST:
        raise ValueError(f"max-tokens must be at least 1 and less than 2^31, got {max_tokens}")
    if not 0 <= temperature < float("inf"):
        raise ValueError(f"temperature must be 0 or more, got {temperature}")
    if top_k is None:
        top_k = DEFAULT_TOP_K
    if not 0 <= top_k <= LARGEST:
        raise ValueError(f"top-k must be 0 (off) or more and less than 2^31, got {top_k}")
    if not 0 < top_p <= 1:
        raise ValueError(f"top-p must be above 0 and at most 1, got {top_p}")
    if not 0 <= min_p < 1:
        raise ValueError(f"min-p must be 0 or more and less than 1, got {min_p}")
    if not 0 < repetition_penalty < float("inf"):
        raise ValueError(
            f"repetition-penalty must be a finite number above 0, got {repetition_penalty}"
        )
    if temperature == 0:
        return Decoding(max_tokens=max_tokens, repetition_penalty=repetition_penalty)
    return Decoding(max_tokens, temperature, top_k, top_p, min_p, repetition_penalty, seed)


def in_force(
    n_samples: int,
    max_tokens: int,
    temperature: float,
    top_k: int | None,
    seed: int,
    *,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
) -> Decoding:
    """Return what a command's options mean; UsageError names the one that means nothing."""
    if not 1 <= n_samples <= MOST_SAMPLES:
        raise UsageError(
            f"--n-samples must be at least 1 and at most {MOST_SAMPLES}, got {n_samples}"
        )
    try:
        found = settle(
            max_tokens, temperature, top_k, seed,
            top_p=top_p, min_p=min_p, repetition_penalty=repetition_penalty,
        )  # fmt: skip
    except ValueError as error:
        raise UsageError(f"--{error}") from error
    if temperature == 0 and (top_p != 1 or min_p != 0):
        name = "--top-p" if top_p != 1 else "--min-p"
        raise UsageError(
            f"{name}: temperature 0 is greedy and always takes the likeliest token. "
            "Give a --temperature above 0, or drop it."
        )
    return found
