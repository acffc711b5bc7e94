"""Read and write safetensors files: a JSON header, then the tensors' bytes."""

from __future__ import annotations

import json
import struct
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from assay.errors import ModelError
from assay.formats.tensors import PLAIN, Tensor, map_file, part_of, sizes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

# The format allows 100 MB, which is 25 times as much once parsed; 90,000 tensors need 11 MB.
MAX_HEADER = 32 << 20
MAX_DIMENSIONS = 64
# Bits per value of every type in the format.
BITS = {
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8,
    "F8_E8M0": 8, "U16": 16, "I16": 16, "F16": 16, "BF16": 16, "U32": 32, "I32": 32, "F32": 32,
    "U64": 64, "I64": 64, "F64": 64, "C64": 64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """A tensor as the header describes it. Offsets count from the start of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SafetensorsIndex:
    """A file's header, trusted as little as possible."""

    path: Path
    entries: tuple[TensorEntry, ...]  # in the order of the data
    repeated: tuple[str, ...]  # names that occur twice
    data_at: int
    file_size: int


def read_index(path: Path) -> SafetensorsIndex:
    """Read the header, not the tensors. Raise ModelError if it is not valid."""
    with path.open("rb") as file:
        whole = file.seek(0, 2)
        if whole < 8:
            raise _damaged(path, "it is cut off")
        file.seek(0)
        (size,) = struct.unpack("<Q", file.read(8))
        if size > min(MAX_HEADER, whole - 8):
            raise _damaged(path, f"a header of {size:,} bytes")
        text = file.read(size)
    repeated: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            repeated.extend(name for name, count in counts.items() if count > 1)
        return fields

    try:
        header = json.loads(text, object_pairs_hook=unique)
        if not isinstance(header, dict):
            raise ValueError("the header is not a JSON object")
        header.pop("__metadata__", None)
        entries = [_entry(name, entry, 8 + size) for name, entry in header.items()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error
    entries.sort(key=lambda entry: entry.start)
    return SafetensorsIndex(path, tuple(entries), tuple(repeated), 8 + size, whole)


def read_safetensors(path: Path) -> list[Tensor]:
    """Return the tensors of a file, in the order of its data, not yet read."""
    index = read_index(path)
    data = map_file(path)
    return [_tensor(path, entry, data) for entry in index.entries]


def write_safetensors(
    file: BinaryIO, tensors: Sequence[Tensor], written: Callable[[int], None]
) -> None:
    """Write a whole file, wide numbers first. ``written`` is called with each tensor's bytes."""
    ordered = sorted(tensors, key=lambda tensor: (-int(PLAIN[tensor.encoding][-1]), tensor.name))
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in ordered:
        header[tensor.name] = {
            "dtype": tensor.encoding,
            "shape": tensor.shape,
            "data_offsets": [offset, offset + tensor.nbytes],
        }
        offset += tensor.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for tensor in ordered:
        file.write(tensor.read())
        written(tensor.nbytes)


def _entry(name: str, entry: Any, data_at: int) -> TensorEntry:
    dtype, shape = entry["dtype"], tuple(entry["shape"])
    start, end = entry["data_offsets"]
    if not isinstance(dtype, str):
        raise ValueError(f"{name} has no type")
    numbers = (*shape, start, end)
    if len(shape) > MAX_DIMENSIONS or not all(
        isinstance(number, int) and 0 <= number < 1 << 64 for number in numbers
    ):
        raise ValueError(f"{name} has no plain shape")
    return TensorEntry(name, dtype, shape, data_at + start, data_at + end)


def _tensor(path: Path, entry: TensorEntry, data: memoryview) -> Tensor:
    name, start, end = entry.name, entry.start, entry.end
    if entry.dtype not in PLAIN:
        raise _damaged(path, f"{name} has the type {entry.dtype}, which cannot be read here")
    if end > len(data) or end - start != sizes_of(entry.dtype, entry.shape)[0]:
        raise _damaged(path, f"{name} extends beyond the end of the file")
    return Tensor(name, entry.dtype, entry.shape, end - start, part_of(data, start, end - start))


def _damaged(path: Path, why: str) -> ModelError:
    return ModelError(f"{path}: is a damaged safetensors file ({why}). Download it again.")
