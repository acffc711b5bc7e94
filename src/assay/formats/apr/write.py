"""Write .apr files, version 2."""

from __future__ import annotations

import json
import struct
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO

from assay.errors import ModelError
from assay.formats.apr.file import (
    ALIGNMENT,
    CRC_AT,
    ENCODINGS,
    HAS_VOCABULARY,
    HEADER,
    MAGIC,
    MAX_METADATA,
    QUANTISED,
    ROW_MAJOR,
    VERSION,
)
from assay.formats.apr.metadata import VOCABULARY, AprMetadata
from assay.formats.tensors import PLAIN, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# The type numbers that all readers of the format interpret in the same way.
NUMBERS = {names[0]: number for number, names in ENCODINGS.items() if number not in (2, 8, 9, 13)}


def write_apr(
    file: BinaryIO,
    metadata: AprMetadata,
    tensors: Sequence[Tensor],
    written: Callable[[int], None],
) -> None:
    """Write a whole file. ``written`` is called with the bytes of each tensor.

    The data keeps the order of the given tensors. Only the index is sorted.
    """
    try:
        text = json.dumps(
            metadata.content, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ).encode()
    except ValueError as error:  # infinity, or half a character
        raise ModelError(
            f"the tokenizer or settings cannot be stored in an .apr file ({error}). Keep the model "
            "in its format."
        ) from error
    if len(text) > MAX_METADATA:
        raise ModelError(
            f"the tokenizer and settings take {len(text):,} bytes; an .apr file holds at most "
            "16 MiB of them. Keep the model in its format."
        )
    entries, offset = {}, 0
    for tensor in tensors:
        name = tensor.name.encode()
        entries[name] = struct.pack("<H", len(name)) + name
        entries[name] += struct.pack(
            f"<BB{len(tensor.shape)}QQQ",
            NUMBERS[tensor.encoding],
            len(tensor.shape),
            *tensor.shape,
            offset,
            tensor.nbytes,
        )
        offset += tensor.nbytes + -tensor.nbytes % ALIGNMENT
    index = b"".join(entry for _, entry in sorted(entries.items()))
    index_at = HEADER.size + len(text) + -len(text) % ALIGNMENT
    flags = ROW_MAJOR
    if VOCABULARY in metadata.content:
        flags |= HAS_VOCABULARY
    if any(tensor.encoding not in PLAIN for tensor in tensors):
        flags |= QUANTISED
    data_at = index_at + len(index) + -len(index) % ALIGNMENT
    fields = (MAGIC, VERSION, 0, flags, len(tensors), HEADER.size, len(text), index_at, data_at)
    header = HEADER.pack(*fields, 0)
    crc = zlib.crc32(header[:CRC_AT] + header[CRC_AT + 4 :])
    sink = _Summed(file)
    for part in (HEADER.pack(*fields, crc), text, index):
        sink.write_padded(part)
    for tensor in tensors:
        sink.write_padded(tensor.read())
        written(tensor.nbytes)
    file.write(struct.pack("<I", sink.crc))


class _Summed:
    """Write whole units of the alignment and update their CRC."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.crc = 0

    def write_padded(self, data: Any) -> None:
        for part in (data, bytes(-len(data) % ALIGNMENT)):
            self.crc = zlib.crc32(part, self.crc)
            self._file.write(part)
