"""Messages through pipes: four bytes of length, then JSON."""

from __future__ import annotations

import json
import os
import struct
from typing import Any

MAX_LENGTH = (1 << 32) - 1


def dumps(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def send(descriptor: int, message: Any) -> None:
    send_encoded(descriptor, dumps(message))


def send_encoded(descriptor: int, data: bytes) -> None:
    data = struct.pack(">I", len(data)) + data
    while data:
        data = data[os.write(descriptor, data) :]


def receive(descriptor: int, largest: int = MAX_LENGTH) -> Any:
    """The next message; EOFError when the other end is gone, ValueError if it is none."""
    return json.loads(receive_encoded(descriptor, largest))


def receive_encoded(descriptor: int, largest: int = MAX_LENGTH) -> bytes:
    (length,) = struct.unpack(">I", _exactly(descriptor, 4))
    if length > largest:
        raise ValueError(f"a message of {length} bytes")
    return _exactly(descriptor, length)


def _exactly(descriptor: int, size: int) -> bytes:
    pieces = []
    while size:
        piece = os.read(descriptor, min(size, 1 << 20))
        if not piece:
            raise EOFError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
