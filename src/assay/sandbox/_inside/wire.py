"""Messages through pipes: four bytes of length, then JSON."""

from __future__ import annotations

import json
import os
import struct
from typing import Any


def send(descriptor: int, message: Any) -> None:
    data = json.dumps(message).encode()
    data = struct.pack(">I", len(data)) + data
    while data:
        data = data[os.write(descriptor, data) :]


def receive(descriptor: int) -> Any:
    """The next message; EOFError when the other end is gone."""
    (length,) = struct.unpack(">I", _exactly(descriptor, 4))
    return json.loads(_exactly(descriptor, length))


def _exactly(descriptor: int, size: int) -> bytes:
    pieces = []
    while size:
        piece = os.read(descriptor, min(size, 1 << 20))
        if not piece:
            raise EOFError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
