"""Read and write .apr files, version 2. Every length is checked before it is used.

Writers of this format disagree about some type numbers. 8 and 9 are the format's own quantisations
in old files and GGML's Q8_0 and Q8_1 in others. 2 is bfloat16 or Q4_0. The size of the tensor
decides.
"""

from __future__ import annotations

import json
import mmap
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from assay.errors import ModelError
from assay.formats.tensors import PLAIN, Tensor, map_file, part_of, sizes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


VOCABULARY, MERGES = "tokenizer.vocabulary", "tokenizer.merges"
OURS = "assay"  # the key for values that the format has no keys for
T = TypeVar("T")
MAGIC = b"APR\0"
OLD_MAGICS = (b"APR1", b"APRN", b"APR2")
VERSION = 2
# Magic, version (major, minor), flags, tensors, metadata's offset and size, index, data, CRC.
HEADER = struct.Struct("<4sBBHIQIQQI20x")
CRC_AT = 40  # in the header, of the header without it
FOOTER = 4  # bytes: the CRC of all before
ALIGNMENT = 64
MAX_METADATA = 16 << 20
MAX_DIMENSIONS = 8
MAX_TENSORS = 1 << 17
SMALLEST_ENTRY = 20
PIECE = 1 << 24  # bytes read at a time
ROW_MAJOR, HAS_VOCABULARY, QUANTISED = 0x400, 0x200, 0x20
HARMLESS = ROW_MAJOR | HAS_VOCABULARY | QUANTISED | 0x40 | 0x80 | 0x100
UNREADABLE = {
    0x1: "compressed with LZ4",
    0x2: "compressed with Zstandard",
    0x4: "encrypted",
    0x8: "signed",
    0x10: "one of several shards",
    0x800: "stored column by column",
}
ENCODINGS = {
    0: ("F32",),
    1: ("F16",),
    2: ("BF16", "Q4_0"),
    3: ("F64",),
    4: ("I32",),
    5: ("I64",),
    6: ("I8",),
    7: ("U8",),
    8: ("APR_Q4", "Q8_0"),
    9: ("APR_Q8", "Q8_1"),
    12: ("Q4_K",),
    13: ("Q5_K",),
    14: ("Q6_K",),
    30: ("BF16",),
    128: ("APR_Q4",),
    129: ("APR_Q8",),
}
# The type numbers that all readers of the format interpret in the same way.
NUMBERS = {names[0]: number for number, names in ENCODINGS.items() if number not in (2, 8, 9, 13)}


@dataclass(frozen=True, slots=True)
class AprMetadata:
    """All entries. Other programs write some of them with the prefix ``model.``."""

    content: dict[str, Any]

    def get(self, key: str, otherwise: Any = None) -> Any:
        return self.content.get(key, otherwise)

    def first(self, *keys: str) -> Any:
        """Return the first entry that exists, in either spelling; None if there is none."""
        both = [spelling for key in keys for spelling in (key, f"model.{key}")]
        return next((self.content[k] for k in both if self.content.get(k) is not None), None)


@dataclass(frozen=True, slots=True)
class AprTensor:
    name: str
    encoding: str
    shape: tuple[int, ...]
    start: int  # in the file
    size: int


@dataclass(frozen=True, slots=True)
class AprHead:
    """The part before the index: the number of tensors, and the offsets of all parts."""

    version: tuple[int, int]
    metadata: AprMetadata
    count: int
    metadata_at: int
    metadata_size: int
    index_at: int
    data_at: int


@dataclass(frozen=True, slots=True)
class AprFile:
    """A file's metadata and tensors, which are in the order of their data."""

    path: Path
    head: AprHead
    tensors: tuple[AprTensor, ...]
    index_end: int

    @property
    def metadata(self) -> AprMetadata:
        return self.head.metadata

    def unread(self) -> list[Tensor]:
        """Return the tensors under the file's own names. Call ``check_sum`` before using them."""
        data = map_file(self.path)
        return [
            Tensor(t.name, t.encoding, t.shape, t.size, part_of(data, t.start, t.size))
            for t in self.tensors
        ]


def is_apr(path: Path) -> bool:
    """Return whether a file is an .apr file, of any version."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) in (MAGIC, *OLD_MAGICS)


def check_sum(path: Path) -> None:
    """Raise unless the CRC at a file's end is correct. This reads all of it."""
    with path.open("rb") as file:
        left, crc = file.seek(0, 2) - FOOTER, 0
        file.seek(0)
        while left > 0 and (piece := file.read(min(PIECE, left))):
            crc = zlib.crc32(piece, crc)
            left -= len(piece)
        if struct.pack("<I", crc) != file.read(FOOTER):
            raise ModelError(
                f"{path}: is a damaged .apr file (its CRC is wrong). Download or convert it again."
            )


def read_head(path: Path) -> AprHead:
    """Read only header and metadata."""
    return _reading(path, lambda reader: reader.head())


def read_apr(path: Path) -> AprFile:
    """Read header, metadata and index. The weights are not read, so their CRC is not checked."""
    return _reading(path, lambda reader: reader.file())


def _reading(path: Path, what: Callable[[_AprReader], T]) -> T:
    with path.open("rb") as file:
        start = file.read(HEADER.size)
        size = file.seek(0, 2)
        if start[:4] in OLD_MAGICS:
            version = start[:4].decode()
            raise ModelError(
                f"{path}: is an .apr file of an old format ({version}). Only version 2 can be "
                "read. Convert the original model again."
            )
        if start[:4] != MAGIC:
            raise ModelError(
                f"{path}: is not an .apr file. Give a .apr file or use another engine."
            )
        if len(start) < HEADER.size or size < HEADER.size + FOOTER:
            raise _cut_off(path, size, HEADER.size + FOOTER)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return what(_AprReader(path, data))
            except (ValueError, RecursionError) as error:
                raise ModelError(
                    f"{path}: is a damaged .apr file ({error}). Download or convert it again."
                ) from error


class _AprReader:
    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path, self._data = path, data
        self._end = len(data) - FOOTER

    def head(self) -> AprHead:
        header = self._data[: HEADER.size]
        _, major, minor, flags, count, meta_at, meta_size, index_at, data_at, crc = HEADER.unpack(
            header
        )
        if zlib.crc32(header[:CRC_AT] + header[CRC_AT + 4 :]) != crc:
            raise ValueError("the header's CRC is wrong")
        if major != VERSION:
            raise ModelError(
                f"{self._path}: has version {major}.{minor} of the .apr format. Only version 2 can "
                "be read. Convert the original model again."
            )
        self._check_flags(flags)
        if meta_size > MAX_METADATA:
            raise ValueError(f"{meta_size:,} bytes of metadata; the limit is 16 MiB")
        self._need(meta_at + meta_size)
        self._need(data_at)
        if count * SMALLEST_ENTRY > self._end - index_at or count > MAX_TENSORS:
            raise ValueError(f"an index of {count:,} tensors in {len(self._data):,} bytes")
        metadata = json.loads(self._data[meta_at : meta_at + meta_size])
        if not isinstance(metadata, dict):
            raise ValueError("the metadata is not a JSON object")
        return AprHead(
            (major, minor), AprMetadata(metadata), count, meta_at, meta_size, index_at, data_at
        )

    def file(self) -> AprFile:
        head = self.head()
        found, end = self._index(head.index_at, head.count, head.data_at)
        tensors = sorted(found, key=lambda t: (t.start, t.name))
        if len({tensor.name for tensor in tensors}) < head.count:
            raise ValueError("two tensors with the same name")
        return AprFile(self._path, head, tuple(tensors), end)

    def _check_flags(self, flags: int) -> None:
        for flag, meaning in UNREADABLE.items():
            if flags & flag:
                raise ModelError(
                    f"{self._path}: is {meaning}, which cannot be read here. Convert the original "
                    "model again without that."
                )
        if unknown := flags & ~HARMLESS:
            raise ModelError(
                f"{self._path}: has the unknown flag {unknown:#06x} of a newer format. Convert the "
                "original model again with assay convert."
            )

    def _index(self, at: int, count: int, data_at: int) -> tuple[list[AprTensor], int]:
        """Return the entries, and where they end."""
        tensors = []
        for _ in range(count):
            (length,) = self._take("<H", at)
            self._need(at + 2 + length)
            name = self._data[at + 2 : at + 2 + length].decode()
            kind, dimensions = self._take("<BB", at + 2 + length)
            if dimensions > MAX_DIMENSIONS:
                raise ValueError(f"a tensor of {dimensions} dimensions")
            at += 4 + length
            *shape, offset, size = self._take(f"<{dimensions + 2}Q", at)
            at += 8 * (dimensions + 2)
            self._need(data_at + offset + size)
            encoding = _encoding(name, kind, tuple(shape), size)
            tensors.append(AprTensor(name, encoding, tuple(shape), data_at + offset, size))
        return tensors, at

    def _take(self, layout: str, at: int) -> tuple[int, ...]:
        self._need(at + struct.calcsize(layout))
        return struct.unpack_from(layout, self._data, at)

    def _need(self, end: int) -> None:
        if end > self._end:
            raise _cut_off(self._path, len(self._data), end + FOOTER)


def _encoding(name: str, kind: int, shape: tuple[int, ...], size: int) -> str:
    if kind not in ENCODINGS:
        raise ValueError(f"tensor {name} has the unknown type {kind}")
    for encoding in ENCODINGS[kind]:
        if size in sizes_of(encoding, shape):
            return encoding
    raise ValueError(f"tensor {name} has {size:,} bytes, which do not fit its shape {list(shape)}")


def _cut_off(path: Path, size: int, needed: int) -> ModelError:
    return ModelError(
        f"{path}: is cut off (it has {size:,} bytes and needs at least {needed:,}). Download or "
        "convert it again."
    )


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
    """A file of whole units of the alignment, and their CRC."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.crc = 0

    def write_padded(self, data: Any) -> None:
        for part in (data, bytes(-len(data) % ALIGNMENT)):
            self.crc = zlib.crc32(part, self.crc)
            self._file.write(part)
