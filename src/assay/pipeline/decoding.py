"""How tokens are chosen: what was asked for, completed and checked; named sets of settings."""

from __future__ import annotations

from dataclasses import dataclass

from assay.errors import UsageError
from assay.types import Decoding

DEFAULT_TOP_K = 40
MAX_TOKENS = 512
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


def settle(max_tokens: int, temperature: float, top_k: int | None, seed: int) -> Decoding:
    """The settings in force; ValueError says which has no meaning.

    Greedy has one spelling, whatever top-k and seed were given.
    """
    if max_tokens < 1:
        raise ValueError(f"max-tokens must be at least 1, got {max_tokens}")
    if not 0 <= temperature < float("inf"):
        raise ValueError(f"temperature must be 0 or more, got {temperature}")
    if top_k is None:
        top_k = DEFAULT_TOP_K
    if top_k < 0:
        raise ValueError(f"top-k must be 0 (off) or more, got {top_k}")
    if temperature == 0:
        return Decoding(max_tokens=max_tokens)
    return Decoding(max_tokens, temperature, top_k, seed=seed)


def in_force(
    n_samples: int, max_tokens: int, temperature: float, top_k: int | None, seed: int
) -> Decoding:
    """What a command's options mean; UsageError names the one that means nothing."""
    if n_samples < 1:
        raise UsageError(f"--n-samples must be at least 1, got {n_samples}")
    try:
        return settle(max_tokens, temperature, top_k, seed)
    except ValueError as error:
        raise UsageError(f"--{error}") from error
