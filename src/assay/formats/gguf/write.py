"""Write GGUF files: metadata as given, tensors one at a time."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

from assay.formats.gguf.file import ARRAY, MAGIC, SCALARS, STRING, GgufPair, alignment_of
from assay.formats.tensors import GGML_NUMBERS, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

VERSION = 3


def write_gguf(
    file: BinaryIO,
    pairs: Sequence[GgufPair],
    tensors: Sequence[Tensor],
    written: Callable[[int], None],
) -> None:
    """Write a whole file. ``written`` is called with the bytes of each tensor, named as in GGUF."""
    alignment = alignment_of(pairs)
    header = bytearray(MAGIC + struct.pack("<IQQ", VERSION, len(tensors), len(pairs)))
    for pair in pairs:
        header += _text(pair.key) + struct.pack("<I", pair.kind) + _value(pair)
    offset = 0
    for tensor in tensors:
        header += _text(tensor.name) + struct.pack("<I", len(tensor.shape))
        header += b"".join(struct.pack("<Q", size) for size in tensor.shape[::-1])
        header += struct.pack("<IQ", GGML_NUMBERS[tensor.encoding], offset)
        offset += tensor.nbytes + -tensor.nbytes % alignment
    file.write(header + bytes(-len(header) % alignment))
    for tensor in tensors:
        file.write(tensor.read())
        file.write(bytes(-tensor.nbytes % alignment))
        written(tensor.nbytes)


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def _value(pair: GgufPair) -> bytes:
    if pair.kind != ARRAY or not isinstance(pair.value, Sequence):
        return _scalars(pair.kind, [pair.value])
    count = struct.pack("<IQ", pair.item_kind, len(pair.value))
    return count + _scalars(pair.item_kind, pair.value)


def _scalars(kind: int, values: Iterable[object]) -> bytes:
    if kind == STRING:
        return b"".join(_text(str(value)) for value in values)
    return b"".join(struct.pack("<" + SCALARS[kind], value) for value in values)
