"""Reads a GGUF file's header: enough to know the model, and that the file is whole."""

from __future__ import annotations

import hashlib
import mmap
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"GGUF"
VERSIONS = (2, 3)
SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
STRING, ARRAY = 8, 9
MAX_DIMENSIONS = 4
# ggml tensor types: (values a block, bytes a block).
BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
    9: (32, 36), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210),
    15: (256, 292), 16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18),
    21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8),
    28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Scalar and text metadata (arrays are only skipped over) and the tokenizer's digest."""

    metadata: dict[str, Any]
    tokenizer_sha256: str

    @property
    def name(self) -> str:
        return str(self.metadata.get("general.name", ""))

    @property
    def chat_template(self) -> str:
        return str(self.metadata.get("tokenizer.chat_template", ""))

    @property
    def context_length(self) -> int:
        architecture = self.metadata.get("general.architecture")
        return int(self.metadata.get(f"{architecture}.context_length", 2048))


def is_gguf(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == MAGIC


def read_header(path: Path) -> GgufHeader:
    """Metadata of a whole file; ModelError says if it is another format, damaged or cut off."""
    if not is_gguf(path):
        raise ModelError(f"{path} is not a GGUF file: give a .gguf file or another engine")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return _Reader(data).header()
        except _CutOffError as error:
            raise ModelError(
                f"{path} is cut off: it has {len(data):,} bytes and needs at least "
                f"{error.needed:,}; fetch it again"
            ) from error
        except (ValueError, ArithmeticError) as error:
            raise ModelError(
                f"{path} has a damaged GGUF header ({error}): fetch it again"
            ) from error


class _CutOffError(Exception):
    def __init__(self, needed: int) -> None:
        self.needed = needed


class _Reader:
    """A cursor that checks every length against the file before it believes it."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = len(MAGIC)

    def header(self) -> GgufHeader:
        version = self._scalar("I")
        if version not in VERSIONS:
            raise ValueError(f"version {version}")
        tensors, pairs = self._scalar("Q"), self._scalar("Q")
        metadata: dict[str, Any] = {}
        tokenizer = hashlib.sha256()
        for _ in range(pairs):
            key = self._text()
            start = self._at
            value = self._value(self._scalar("I"))
            if value is not None:
                metadata[key] = value
            if key.startswith("tokenizer.") and key != "tokenizer.chat_template":
                tokenizer.update(key.encode() + self._data[start : self._at])
        self._check_tensors(tensors, int(metadata.get("general.alignment", 32)))
        return GgufHeader(metadata, tokenizer.hexdigest())

    def _check_tensors(self, count: int, alignment: int) -> None:
        ends = [0]
        for _ in range(count):
            self._text()
            dimensions = self._scalar("I")
            if dimensions > MAX_DIMENSIONS:
                raise ValueError(f"a tensor of {dimensions} dimensions")
            values = 1
            for _ in range(dimensions):
                values *= self._scalar("Q")
            per_block, size = BLOCKS.get(self._scalar("I"), (1, 0))
            ends.append(self._scalar("Q") + values // per_block * size)
        data_start = -(-self._at // alignment) * alignment
        self._need(data_start + max(ends))

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
        return self._take(self._scalar("Q")).decode()

    def _value(self, kind: int) -> Any:
        if kind == STRING:
            return self._text()
        if kind == ARRAY:
            return self._skip_array()
        if kind not in SCALARS:
            raise ValueError(f"metadata type {kind}")
        return self._scalar(SCALARS[kind])

    def _skip_array(self) -> None:
        kind, count = self._scalar("I"), self._scalar("Q")
        if kind in SCALARS:
            end = self._at + count * struct.calcsize("<" + SCALARS[kind])
            self._need(end)
            self._at = end
        elif kind == STRING:
            for _ in range(count):
                end = self._at + 8 + self._scalar_ahead()
                self._need(end)
                self._at = end
        else:
            raise ValueError(f"array of type {kind}")

    def _scalar_ahead(self) -> int:
        self._need(self._at + 8)
        return int(struct.unpack_from("<Q", self._data, self._at)[0])
