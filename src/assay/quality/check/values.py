"""Find NaN and infinity in the stored bits of weights.

A quantised block consists of some scales and integers. Its values are finite if the scales are. So
nothing is dequantised, and a file is read in pieces, however large its tensors are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from assay.formats.huggingface.safetensors import BITS
from assay.formats.tensors import APR_Q8, BLOCKS
from assay.quality.check.contents import TensorPart

PIECE = 1 << 24  # bytes read at a time


@dataclass(frozen=True, slots=True)
class Bits:
    """A float inside a block. It is NaN or infinite if all bits of the mask are set."""

    at: int
    kind: str  # numpy's
    mask: int


def _float32(at: int = 0) -> Bits:
    return Bits(at, "<u4", 0x7F80_0000)


def _halves(*places: int) -> tuple[Bits, ...]:
    return tuple(Bits(at, "<u2", 0x7C00) for at in places)


FLOATS: dict[str, tuple[Bits, ...]] = {
    "F32": (_float32(),),
    "C64": (_float32(), _float32(4)),
    "F64": (Bits(0, "<u8", 0x7FF0_0000_0000_0000),),
    "F16": _halves(0),
    "BF16": (Bits(0, "<u2", 0x7F80),),
    "F8_E5M2": (Bits(0, "u1", 0x7C),),
    "F8_E4M3": (Bits(0, "u1", 0x7F),),
    "F8_E8M0": (Bits(0, "u1", 0xFF),),
    **dict.fromkeys(("Q4_1", "Q5_1", "Q8_1", "Q4_K", "Q5_K"), _halves(0, 2)),
    **dict.fromkeys(("Q4_0", "Q5_0", "Q8_0", "Q1_0", "APR_Q4", "IQ4_NL", "IQ4_XS"), _halves(0)),
    **dict.fromkeys(
        ("IQ1_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"),
        _halves(0),
    ),
    "Q2_K": _halves(80, 82),
    "Q3_K": _halves(108),
    "Q6_K": _halves(208),
    "Q8_K": (_float32(),),
    "TQ1_0": _halves(52),
    "TQ2_0": _halves(64),
    # Its scale's exponent is spread over the upper bits of two of its numbers.
    "IQ1_M": (Bits(52, "<u4", 0x7000_C000),),
    "MXFP4": (Bits(0, "u1", 0xFF),),
    APR_Q8: (_float32(),),
}


def not_finite(parts: Sequence[TensorPart], progress: Callable[[int, int], None]) -> dict[str, int]:
    """Return how many blocks (or numbers) of each tensor are NaN or infinite, if any."""
    total, done, counts = sum(part.size for part in parts), 0, {}
    ordered = sorted(parts, key=lambda part: (str(part.file), part.start))
    for path, some in itertools.groupby(ordered, key=lambda part: part.file):
        with path.open("rb") as file:
            for part in some:
                if count := _count(file, part):
                    counts[part.name] = count
                done += part.size
                progress(done, total)
    return counts


def _count(file: BinaryIO, part: TensorPart) -> int:
    floats = FLOATS.get(part.encoding, ())
    if not floats or not part.size:
        return 0
    file.seek(part.start)
    if part.encoding == APR_Q8:  # one scale for all
        return _not_finite_in(file.read(4), 4, floats)
    width = BLOCKS[part.encoding][1] if part.encoding in BLOCKS else BITS[part.encoding] // 8
    step, left, count = PIECE // width * width, part.size, 0
    while left and (piece := file.read(min(step, left))):
        count += _not_finite_in(piece, width, floats)
        left -= len(piece)
    return count


def _not_finite_in(piece: bytes, width: int, floats: tuple[Bits, ...]) -> int:
    import numpy as np

    blocks = np.frombuffer(piece, np.uint8).reshape(-1, width)
    bad: Any = np.zeros(len(blocks), bool)
    for one in floats:
        size = np.dtype(one.kind).itemsize
        stored = np.ascontiguousarray(blocks[:, one.at : one.at + size]).view(one.kind)[:, 0]
        mask = np.array(one.mask, one.kind)
        bad |= (stored & mask) == mask
    return int(np.count_nonzero(bad))
