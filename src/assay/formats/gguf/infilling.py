"""Find a GGUF file's fill-in-the-middle tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.formats.gaps import Gap, GapTokens, build_gap, find_gap
from assay.formats.gguf.file import read_header

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from assay.formats.gguf.file import GgufValue

TOKENS = "tokenizer.ggml.tokens"
# Each with its name in older files.
KEYS = (
    ("tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"),
    ("tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"),
    ("tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"),
)


def read_gap(path: Path) -> Gap | None:
    """Return how the model marks a gap, or None if it has no tokens for that.

    The file's keys name the tokens. Without keys they are found by their known names.
    """
    return gap_of(read_header(path, arrays=True).metadata)


def gap_of(metadata: Mapping[str, GgufValue]) -> Gap | None:
    """Return how a model with this metadata marks a gap, or None."""
    listed = metadata.get(TOKENS)
    tokens = [str(token) for token in listed] if isinstance(listed, list) else []
    vocabulary = {token: number for number, token in enumerate(tokens)}
    named = [_named(metadata, names, tokens) for names in KEYS]
    if all(named):
        prefix, suffix, middle = named
        return build_gap(GapTokens(prefix, suffix, middle), vocabulary)
    return find_gap(vocabulary)


def _named(metadata: Mapping[str, GgufValue], names: tuple[str, ...], tokens: list[str]) -> str:
    """Return the token whose number one of these keys has, or an empty text."""
    for name in names:
        number = metadata.get(name)
        if isinstance(number, int) and 0 <= number < len(tokens):
            return tokens[number]
    return ""
