"""Convert prefix and suffix to the tokens that a model is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from assay.formats.gaps import Gap

    Encode = Callable[[str], list[int]]

# Before a text, so that it is not the first. CodeLlama's own code does the same.
FIRST, LETTER = "\N{WHITE SMILING FACE}", "a"


def gap_prompt(
    encode: Encode, start: Sequence[int], gap: Gap, prefix: str, suffix: str
) -> list[int]:
    """Return the tokens: prefix and suffix after their marks, then the mark of the middle.

    ``encode`` splits a text without special tokens. ``start`` is what precedes every prompt.
    """
    before, after, between = gap.ids
    inner = encode_inner(encode, suffix)
    return [*start, before, *encode(prefix), after, *inner, between]


def encode_inner(encode: Encode, text: str) -> list[int]:
    """Return the tokens of a text inside another.

    SentencePiece puts a space before every text. The suffix of a program must not get one.
    """
    first = encode(FIRST)
    if encode(FIRST + LETTER) == [*first, *encode(LETTER)]:
        return encode(text)
    whole = encode(FIRST + text)
    return whole[len(first) :] if whole[: len(first)] == first else encode(text)
