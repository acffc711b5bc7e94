"""Send messages through pipes: four bytes of length, then JSON. Cache what both sides know."""

from __future__ import annotations

import json
import marshal
import os
import struct
from typing import Any, Generic, TypeVar

from . import plain

Call = tuple[Any, ...]  # positional and named arguments
MAX_LENGTH = (1 << 32) - 1
FRAME = struct.Struct(">cI")
AT_ONCE = 1 << 16
ROOM = 8 << 20
K = TypeVar("K")
T = TypeVar("T")


class Latest(Generic[K, T]):
    """The latest items whose sizes fit into a room, the same ones on both sides of a pipe.

    Only the order in which they were added decides which these are.
    """

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self.items: dict[K, T] = {}
        self._sizes: dict[K, int] = {}

    def add(self, key: K, item: T, size: int) -> None:
        self.items[key] = item
        self._sizes[key] = size
        while len(self.items) > 1 and sum(self._sizes.values()) > self._room:
            oldest = next(iter(self.items))
            del self.items[oldest], self._sizes[oldest]


def dumps(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def send(descriptor: int, message: Any) -> None:
    send_encoded(descriptor, dumps(message))


def send_encoded(descriptor: int, data: bytes) -> None:
    write(descriptor, measured(data))


def measured(data: bytes) -> bytes:
    """Return a message preceded by its length."""
    return struct.pack(">I", len(data)) + data


def write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def dump_calls(calls: list[Call]) -> bytes:
    """Encode calls for the program, which trusts its caller, as fast as possible.

    Version 2 of marshal writes values only. Later versions also write which of them have another
    reference. An argument that is also the expected result would show that.
    """
    try:
        return b"m" + marshal.dumps(calls, 2)
    except ValueError:
        return dump_recipes([[plain.encode(part) for part in call] for call in calls])


def dump_recipes(calls: list[Any]) -> bytes:
    """Encode calls whose arguments are encoded already."""
    return b"j" + dumps(calls)


def receive_calls(descriptor: int) -> list[Call]:
    return load_calls(receive_encoded(descriptor))


def load_calls(data: bytes) -> list[Call]:
    if data[:1] == b"m":
        return list(marshal.loads(data[1:]))
    return [tuple(map(plain.decode, call)) for call in json.loads(data[1:])]


def loads(data: bytes) -> Any:
    return json.loads(data)


def receive(descriptor: int, largest: int = MAX_LENGTH) -> Any:
    """Return the next message. Raise EOFError at the end, ValueError if it is malformed."""
    return json.loads(receive_encoded(descriptor, largest))


def receive_encoded(descriptor: int, largest: int = MAX_LENGTH) -> bytes:
    (length,) = struct.unpack(">I", _exactly(descriptor, 4))
    if length > largest:
        raise ValueError(f"a message of {length} bytes")
    return _exactly(descriptor, length)


def receive_at_once(descriptor: int) -> bytes:
    """Return the only message of a stream, in as few reads as possible."""
    data = os.read(descriptor, AT_ONCE)
    missing = 4 + int.from_bytes(data[:4], "big") - len(data)
    return data[4:] + _exactly(descriptor, missing) if missing else data[4:]


def receive_frame(descriptor: int) -> tuple[bytes, bytes]:
    """Return the stream's name and a piece of it, from a descriptor that streams share."""
    name, length = FRAME.unpack(_exactly(descriptor, FRAME.size))
    return name, _exactly(descriptor, length)


def frame(name: bytes, piece: bytes) -> bytes:
    return FRAME.pack(name, len(piece)) + piece


def _exactly(descriptor: int, size: int) -> bytes:
    pieces = []
    while size:
        piece = os.read(descriptor, min(size, 1 << 20))
        if not piece:
            raise EOFError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
