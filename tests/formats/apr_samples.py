"""Small .apr files, made here byte by byte from the format's description."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 64)


def with_footer(data: bytes) -> bytes:
    return data + struct.pack("<I", zlib.crc32(data))


@dataclass
class AprSample:
    """Everything can be made wrong; ``build`` puts it together with right sums."""

    magic: bytes = b"APR\0"
    version: tuple[int, int] = (2, 0)
    flags: int = 0x400
    metadata: Any = field(default_factory=lambda: {"architecture": "llama"})
    metadata_size: int | None = None
    count: int | None = None
    index_offset: int | None = None
    data_offset: int | None = None
    # Name, type number, shape, bytes.
    tensors: list[tuple[str, int, tuple[int, ...], bytes]] = field(
        default_factory=lambda: [("w", 0, (2, 3), struct.pack("<6f", *range(6)))]
    )

    def build(self) -> bytes:
        metadata = (
            self.metadata
            if isinstance(self.metadata, bytes)
            else json.dumps(self.metadata).encode()
        )
        index, data = b"", b""
        for name, kind, shape, stored in sorted(self.tensors):
            index += struct.pack("<H", len(name.encode())) + name.encode()
            index += struct.pack("<BB", kind, len(shape))
            index += struct.pack(f"<{len(shape)}QQQ", *shape, len(data), len(stored))
            data += padded(stored)
        index_offset = 64 + len(padded(metadata))
        data_offset = index_offset + len(padded(index))
        header = self.magic + struct.pack(
            "<BBHIQIQQ",
            *self.version,
            self.flags,
            len(self.tensors) if self.count is None else self.count,
            64,
            len(metadata) if self.metadata_size is None else self.metadata_size,
            index_offset if self.index_offset is None else self.index_offset,
            data_offset if self.data_offset is None else self.data_offset,
        )
        header += struct.pack("<I", zlib.crc32(header + bytes(20))) + bytes(20)
        return with_footer(header + padded(metadata) + padded(index) + data)
