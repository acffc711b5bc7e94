"""Parse server-sent events out of bytes that may be cut anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def events(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the text after each ``data:``. Yield an event cut off by the end as far as it came.

    Lines end at line feeds alone: JSON may hold the other characters that Python splits lines at.
    """
    data: list[bytes] = []
    for line in _lines(pieces):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            yield b"\n".join(data)
            data = []
    if data:
        yield b"\n".join(data)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    begun: list[bytes] = []
    for piece in pieces:
        first, *rest = piece.split(b"\n")
        begun.append(first)
        for line in rest:
            yield b"".join(begun).removesuffix(b"\r")
            begun = [line]
    yield b"".join(begun).removesuffix(b"\r")
