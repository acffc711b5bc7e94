"""Measure how precisely a model's weights are stored."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Literal

from assay.errors import ModelError
from assay.formats.format import find_format, formats

Precision = Literal["same", "8-bit", "4-bit"]
FOUR_BIT, EIGHT_BIT = 5.1, 9.0  # bits per weight at most, scales included


def bits_per_weight(path: Path) -> float:
    """Return the median of bits per weight: files store some tensors more precisely."""
    sizes = formats.get(find_format(path) or "hf").sizes(path)
    weights = sum(size.numbers for size in sizes)
    if not weights:
        raise ModelError(f"{path}: has no weights. Download or convert it again.")
    by_bits = sorted((8 * size / count, count) for size, count in sizes if count)
    seen = itertools.accumulate(count for _, count in by_bits)
    return next(
        bits for (bits, _), so_far in zip(by_bits, seen, strict=True) if 2 * so_far >= weights
    )


def precision(path: Path) -> Precision:
    bits = bits_per_weight(path)
    if bits <= FOUR_BIT:
        return "4-bit"
    return "8-bit" if bits <= EIGHT_BIT else "same"
