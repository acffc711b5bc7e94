"""Compare a text that a model filled in with the one that was there. Pure functions."""

from __future__ import annotations


def is_exact_match(text: str, expected: str) -> bool:
    """Return whether two texts are equal, except for white space at the ends of lines and texts.

    Indentation counts: in Python it has a meaning.
    """
    return normalise(text) == normalise(expected)


def edit_similarity(text: str, expected: str) -> float:
    """Return how similar two texts are, from 0 to 1, ignoring the same white space.

    It is twice the length of the longest common subsequence over the length of both texts, as
    ``ratio`` of rapidfuzz and fuzzywuzzy computes it.
    """
    first, second = normalise(text), normalise(expected)
    total = len(first) + len(second)
    return 2 * common_length(first, second) / total if total else 1.0


def normalise(text: str) -> str:
    """Return the text without empty lines around it and without white space at line ends."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def common_length(first: str, second: str) -> int:
    """Return the length of the longest common subsequence.

    Each bit of ``row`` is a place in the first text (Hyyrö 2004): a letter of the second text costs
    a few operations on long integers, 1 ms for two texts of 2,000 letters.
    """
    places: dict[str, int] = {}
    for at, letter in enumerate(first):
        places[letter] = places.get(letter, 0) | 1 << at
    every = (1 << len(first)) - 1
    row = every
    for letter in second:
        match = row & places.get(letter, 0)
        row = (row + match | row - match) & every
    return len(first) - row.bit_count()
