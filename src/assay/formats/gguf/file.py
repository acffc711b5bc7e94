"""Read a GGUF file's header, which says whether the file is complete, and write GGUF files."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import mmap
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from assay.errors import ModelError
from assay.formats.stored import EMBEDDINGS, HEADS, StoredModel, count_parameters, name_format
from assay.formats.tensors import GGML_BLOCKS, GGML_NUMBERS, GGML_TYPES, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


MAGIC = b"GGUF"
VERSIONS = (2, 3)
# Types of numbers, by GGUF's number, as ``struct`` writes them.
SCALARS = dict(zip((*range(8), 10, 11, 12), "BbHhIif?Qqd", strict=True))
STRING, ARRAY = 8, 9
MAX_DIMENSIONS = 4
COMPARED = 1 << 20  # bytes of two tensors
ALIGNMENT = 32  # where a file does not say
# Real files are far below these limits. A damaged file must not cause huge allocations.
MAX_ENTRIES = 1 << 17  # tensors, or metadata
MAX_ITEMS = 1 << 22  # of all arrays that are kept; the largest vocabularies have 250,000
MAX_TEXT = 1 << 26  # bytes
GgufScalar = str | int | float | bool
GgufValue = GgufScalar | Sequence[GgufScalar]


VERSION = 3


@dataclass(frozen=True, slots=True)
class GgufPair:
    """One entry of the metadata with its types, so that it can be written as it was."""

    key: str
    kind: int
    value: GgufValue
    item_kind: int = 0  # of an array


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """The place of a tensor in the file. The shape has the rows first."""

    name: str
    shape: tuple[int, ...]
    kind: int
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Metadata (arrays only if requested), the tokenizer's digest, and the tensors."""

    pairs: tuple[GgufPair, ...]
    tokenizer_sha256: str
    tensors: tuple[GgufTensor, ...]
    version: int = max(VERSIONS)
    alignment: int = ALIGNMENT

    @property
    def metadata(self) -> dict[str, GgufValue]:
        return {pair.key: pair.value for pair in self.pairs}

    @property
    def name(self) -> str:
        return str(self.metadata.get("general.name", ""))

    @property
    def chat_template(self) -> str:
        return str(self.metadata.get("tokenizer.chat_template", ""))

    @property
    def context_length(self) -> int:
        return self._number("context_length", 2048)

    @property
    def bytes_per_token(self) -> int:
        """Return bytes of keys and values in float16, to estimate the memory of a sequence."""
        heads = self._number("attention.head_count", 32)
        width = self._number("embedding_length", 4096) // max(1, heads)
        widths = sum(self._number(f"attention.{part}_length", width) for part in ("key", "value"))
        shared = self._number("attention.head_count_kv", heads)
        return max(1, 2 * self._number("block_count", 32) * shared * widths)

    def _number(self, name: str, default: int) -> int:
        """Return a setting of the architecture. One that differs between layers is not known."""
        value = self.metadata.get(f"{self.metadata.get('general.architecture')}.{name}")
        return value if isinstance(value, int) else default


def describe_header(path: Path, header: GgufHeader) -> StoredModel:
    """Return what a file says about its model."""
    weights = Counter[str]()
    for tensor in header.tensors:
        weights[GGML_TYPES.get(tensor.kind, ("",))[0]] += math.prod(tensor.shape)
    label = str(header.metadata.get("general.size_label", ""))
    whole = header.metadata.get("split.count", 1) in (0, 1)  # otherwise other files have the rest
    count = count_parameters(
        {tensor.name: tensor.shape for tensor in header.tensors},
        is_tied=_repeats_embedding(path, header.tensors),
        stated=(label, header.name, path.name),
    )
    return StoredModel(
        parameters=count if whole else 0,
        number_format=name_format(weights, header.metadata.get("general.file_type")),
        title=header.name,
        size_label=label,
    )


def _repeats_embedding(path: Path, tensors: Sequence[GgufTensor]) -> bool:
    """Return whether the first rows of the head are those of the embedding, byte by byte."""
    by_name = {tensor.name: tensor for tensor in tensors}
    pair = [by_name.get(name) for name in (HEADS[0], EMBEDDINGS[0])]
    if None in pair:
        return False
    with path.open("rb") as file:
        starts = []
        for tensor in filter(None, pair):
            file.seek(tensor.start)
            starts.append((tensor.kind, file.read(min(tensor.size, COMPARED))))
    return starts[0] == starts[1]


def is_gguf(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == MAGIC


def read_header(path: Path, *, arrays: bool = False, whole: bool = True) -> GgufHeader:
    """Read the metadata of a file. Raise ModelError for another format, damage or a cut-off file.

    Unless the file must be ``whole``, tensors may be anywhere.
    """
    if not is_gguf(path):
        raise ModelError(f"{path}: is not a GGUF file. Give a .gguf file or use another engine.")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return _GgufReader(data, arrays, whole).header()
        except _CutOffError as error:
            raise ModelError(
                f"{path}: is cut off (it has {len(data):,} bytes and needs at least "
                f"{error.needed:,}). Download it again."
            ) from error
        except (ValueError, ArithmeticError) as error:
            raise ModelError(
                f"{path}: has a damaged GGUF header ({error}). Download it again."
            ) from error


class _CutOffError(Exception):
    def __init__(self, needed: int) -> None:
        self.needed = needed


class _GgufReader:
    """A cursor that checks every length against the file before it uses it."""

    def __init__(self, data: mmap.mmap, arrays: bool, whole: bool) -> None:
        self._data = data
        self._arrays, self._whole = arrays, whole
        self._at = len(MAGIC)
        self._items = 0  # of arrays so far

    def header(self) -> GgufHeader:
        version = self._scalar("I")
        if version not in VERSIONS:
            raise ValueError(f"version {version}")
        tensors, pairs = self._scalar("Q"), self._scalar("Q")
        if max(tensors, pairs) > MAX_ENTRIES:
            raise ValueError(f"{tensors:,} tensors and {pairs:,} metadata")
        entries: list[GgufPair] = []
        tokenizer = hashlib.sha256()
        for _ in range(pairs):
            key = self._text()
            start = self._at
            pair = self._pair(key)
            if pair is not None:
                entries.append(pair)
            elif key == "general.alignment":
                raise ValueError("an alignment that is an array")
            if key.startswith("tokenizer.") and key != "tokenizer.chat_template":
                tokenizer.update(key.encode())
                with memoryview(self._data) as view, view[start : self._at] as part:
                    tokenizer.update(part)
        alignment = alignment_of(entries)
        where = self._tensors(tensors, alignment)
        return GgufHeader(tuple(entries), tokenizer.hexdigest(), where, version, alignment)

    def _tensors(self, count: int, alignment: int) -> tuple[GgufTensor, ...]:
        tensors: list[GgufTensor] = []
        for _ in range(count):
            name = self._text()
            dimensions = self._scalar("I")
            if dimensions > MAX_DIMENSIONS:
                raise ValueError(f"a tensor of {dimensions} dimensions")
            shape = tuple(self._scalar("Q") for _ in range(dimensions))[::-1]
            kind, offset = self._scalar("I"), self._scalar("Q")
            per_block, size = GGML_BLOCKS.get(kind, (1, 0))
            tensors.append(
                GgufTensor(name, shape, kind, offset, math.prod(shape) // per_block * size)
            )
        start = -(-self._at // alignment) * alignment
        tensors = [dataclasses.replace(tensor, start=start + tensor.start) for tensor in tensors]
        if self._whole:
            self._need(max([start, *(tensor.start + tensor.size for tensor in tensors)]))
        return tuple(tensors)

    def _need(self, end: int) -> None:
        if end > len(self._data):
            raise _CutOffError(end)

    def _take(self, size: int) -> bytes:
        self._need(self._at + size)
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken

    def _scalar(self, code: str) -> Any:
        return struct.unpack("<" + code, self._take(struct.calcsize("<" + code)))[0]

    def _text(self) -> str:
        size = self._scalar("Q")
        self._need(self._at + size)
        if size > MAX_TEXT:
            raise ValueError(f"a text of {size:,} bytes")
        return self._take(size).decode()

    def _pair(self, key: str) -> GgufPair | None:
        kind = self._scalar("I")
        if kind == STRING:
            return GgufPair(key, kind, self._text())
        if kind == ARRAY:
            return self._array(key)
        if kind not in SCALARS:
            raise ValueError(f"metadata type {kind}")
        return GgufPair(key, kind, self._scalar(SCALARS[kind]))

    def _array(self, key: str) -> GgufPair | None:
        kind, count = self._scalar("I"), self._scalar("Q")
        if kind not in SCALARS and kind != STRING:
            raise ValueError(f"array of type {kind}")
        size = struct.calcsize("<" + SCALARS.get(kind, "Q"))  # a text has at least its length
        self._need(self._at + count * size)
        if self._arrays or kind == STRING:
            self._items += count
        if self._items > MAX_ITEMS:
            raise ValueError(f"arrays of {self._items:,} values")
        if not self._arrays:
            self._skip(kind, count, size)
            return None
        if kind == STRING:
            return GgufPair(key, ARRAY, [self._text() for _ in range(count)], kind)
        values = struct.unpack(f"<{count}{SCALARS[kind]}", self._take(count * size))
        return GgufPair(key, ARRAY, list(values), kind)

    def _skip(self, kind: int, count: int, size: int) -> None:
        if kind != STRING:
            self._at += count * size
            return
        for _ in range(count):
            self._need(self._at + 8)
            self._at += 8 + struct.unpack_from("<Q", self._data, self._at)[0]
            self._need(self._at)


def alignment_of(pairs: Iterable[GgufPair]) -> int:
    """Return the alignment of tensors in a file. Raise ValueError if it is not valid."""
    value = next((pair.value for pair in pairs if pair.key == "general.alignment"), ALIGNMENT)
    if not isinstance(value, int) or value < 1 or value & (value - 1):
        raise ValueError("an alignment that is not a power of two")
    return value


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
