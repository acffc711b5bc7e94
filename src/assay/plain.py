"""Plain data across a border of trust, as JSON: a closed set of types, and never code.

What JSON has stands for itself; everything else is an object of one key, the name of its type. A
subclass crosses as the data of its base, so that its own comparisons stay behind. What is no plain
data arrives as ``Opaque``, equal to nothing. Large values can cross as digests.

The fork server loads this file by its path: it imports the standard library alone.
"""

from __future__ import annotations

import marshal
import os
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain, islice
from typing import Any

DEEPEST = 200
LARGE = 1 << 16  # items and characters
PIECE = 1000  # tuples written at a time
MOST_ITEMS = 1_000_000  # of an iterator, which may have no end
DECIMAL_BITS = 8192  # larger integers are written in hexadecimal, which is never slow

# The bases' own methods: a subclass may have overridden its own.
_CONTAINERS: tuple[tuple[type, str, Callable[[Any], Any]], ...] = (
    (tuple, "tuple", tuple.__iter__),
    (list, "list", list.__iter__),
    (dict, "dict", lambda d: map(list, dict.items(d))),
    (set, "set", set.__iter__),
    (frozenset, "frozenset", frozenset.__iter__),
    (deque, "deque", deque.__iter__),
    (type({}.keys()), "keys", iter),
    (type({}.values()), "values", iter),
    (type({}.items()), "items", iter),
)
_LEAVES: tuple[tuple[type, str, Callable[[Any], Any]], ...] = (
    (bytes, "bytes", bytes.hex),
    (bytearray, "bytearray", bytearray.hex),
    (range, "range", lambda r: [encode(n) for n in (r.start, r.stop, r.step)]),
    (complex, "complex", lambda c: [complex.__pos__(c).real, complex.__pos__(c).imag]),
)
_DECIMAL = 1 << DECIMAL_BITS
_JSON = {str, float, bool, type(None)}
_JSON_SCALARS = _JSON | {int}
_TEXTS = {str, bytes, type(None)}  # equal only to their own kind
_NUMBERS, _EXACT = {int, float, bool}, 2.0**53  # equal to each other as floats, up to here
_TYPES = {
    t.__name__: t
    for t in (int, float, complex, bool, str, bytes, list, tuple, dict, set, frozenset, type(None))
}


class Opaque:
    """Stands for a value that was no plain data."""

    __slots__ = ("kind",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __eq__(self, other: object) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<{self.kind}>"


class Large:
    """Stands for a value that is known by its digest alone."""

    __slots__ = ("digest",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, found: str) -> None:
        self.digest = found

    def __eq__(self, other: object) -> bool:
        return self.digest == (other.digest if isinstance(other, Large) else digest(other))

    def __repr__(self) -> str:
        return f"<a large value, sha256 {self.digest[:12]}…>"


def encode(value: Any, depth: int = 0) -> Any:
    """The value as JSON-ready data."""
    kind = type(value)
    if kind is str or kind is bool or kind is float or value is None:
        return value
    if isinstance(value, int):
        number = int.__pos__(value)
        return number if number.bit_length() <= DECIMAL_BITS else {"int": hex(number)}
    if depth > DEEPEST:
        return {"opaque": "too deeply nested"}
    if kind is list and _is_json(value):
        return value
    for base, tag, parts in _CONTAINERS:
        if isinstance(value, base):
            items = [encode(part, depth + 1) for part in parts(value)]
            return items if base is list else {tag: items}
    if isinstance(value, float):
        return float.__pos__(value)
    if isinstance(value, str):
        return str.__str__(value)
    for base, tag, text in _LEAVES:
        if isinstance(value, base):
            return {tag: text(value)}
    if kind is Large:
        return {"large": value.digest}
    if kind is type and value in _TYPES.values():
        return {"type": value.__name__}
    if kind.__module__ in ("decimal", "fractions") and kind.__name__ in ("Decimal", "Fraction"):
        return {kind.__name__: str(value)}
    if kind.__module__ == "numpy" and hasattr(value, "tolist"):
        data = encode(value.tolist(), depth + 1)
        return {"array": data} if kind.__name__ == "ndarray" else data
    if hasattr(kind, "__next__"):
        return {"iterator": [encode(i, depth + 1) for i in islice(value, MOST_ITEMS)]}
    return {"opaque": kind.__name__}


def _is_json(values: list[Any]) -> bool:
    """Whether all of them stand for themselves, told without a look at each."""
    kinds = set(map(type, values))
    if kinds == {int}:
        return bool(min(values) > -_DECIMAL and max(values) < _DECIMAL)
    return kinds <= _JSON


def abridged(value: Any) -> Any:
    """The value as JSON-ready data, or its digest if it is large."""
    return {"large": digest(value)} if _room_left(value, LARGE) < 0 else encode(value)


def digest(value: Any) -> str:
    """The same for values that are equal, and different for others."""
    import hashlib

    sha256 = hashlib.sha256()
    _feed(sha256.update, value)
    return sha256.hexdigest()


def _feed(update: Callable[[bytes], None], value: Any) -> None:
    if isinstance(value, list | tuple):
        update((b"[%d" if isinstance(value, list) else b"(%d") % len(value))
        kinds = set(map(type, value))
        if kinds <= _TEXTS:
            update(_text(value))
        elif kinds == {tuple} and _TEXTS.issuperset(map(type, chain.from_iterable(value))):
            for start in range(0, len(value), PIECE):
                update(_text(value[start : start + PIECE]))
        elif kinds <= _NUMBERS and min(value) >= -_EXACT and max(value) <= _EXACT:
            update(array("d", value).tobytes())
        else:
            for item in value:
                _feed(update, item)
    elif isinstance(value, set | frozenset):
        update(b"{" + "".join(sorted(map(digest, value))).encode())
    elif isinstance(value, dict):
        update(b":" + "".join(sorted(map(digest, dict.items(value)))).encode())
    elif isinstance(value, float) and value.is_integer():
        update(marshal.dumps(int(value), 0))
    elif isinstance(value, int | str | float):
        update(marshal.dumps(value if type(value) is not bool else int(value), 0))
    elif isinstance(value, bytes) or value is None:
        update(marshal.dumps(value, 0))
    else:
        update(os.urandom(16))  # equal to nothing


def _text(values: Iterable[Any]) -> bytes:
    return marshal.dumps(tuple(values), 0)  # a version that writes equal values alike


def _room_left(value: Any, room: int) -> int:
    """What is left of ``room`` items and characters, or something negative."""
    if isinstance(value, str | bytes):
        return room - len(value)
    if isinstance(value, int):
        return room - value.bit_length() // 8
    if isinstance(value, list | tuple | set | frozenset | dict):
        room -= len(value)
        for item in value.items() if isinstance(value, dict) else value:
            if room < 0:
                break
            room = _room_left(item, room)
    return room


def decode(data: Any) -> Any:
    """The value of encoded data; ValueError if it is none."""
    kind = type(data)
    if kind is list:
        return data if _JSON_SCALARS.issuperset(map(type, data)) else [decode(i) for i in data]
    if kind is not dict:
        return data
    try:
        ((tag, content),) = data.items()
        return _DECODERS[tag](content)
    except (TypeError, KeyError, ArithmeticError) as error:
        raise ValueError(f"not encoded data: {error!r}") from error


def has_opaque(data: Any, kind: str = "") -> bool:
    """Return whether encoded data stands for something, of this kind, that is no plain data."""
    if isinstance(data, dict):
        if "opaque" in data:
            return not kind or data["opaque"] == kind
        return any(has_opaque(value, kind) for value in data.values())
    return isinstance(data, list) and any(has_opaque(item, kind) for item in data)


# Imported when needed: every page of a fork server makes every fork dearer.
def _decimal(text: Any) -> Any:
    from decimal import Decimal

    return Decimal(text)


def _fraction(text: Any) -> Any:
    from fractions import Fraction

    return Fraction(text)


def _array(content: Any) -> Any:
    try:
        import numpy  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return Opaque("ndarray")
    return numpy.array(decode(content))


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda items: tuple(map(decode, items)),
    "dict": lambda pairs: dict(map(decode, pairs)),
    "set": lambda items: set(map(decode, items)),
    "frozenset": lambda items: frozenset(map(decode, items)),
    "folded": lambda items: set(frozenset(map(decode, items))),  # as Python makes a set of constants
    "deque": lambda items: deque(map(decode, items)),
    "keys": lambda items: dict.fromkeys(map(decode, items)).keys(),
    "values": lambda items: dict(enumerate(map(decode, items))).values(),
    "items": lambda items: dict(map(decode, items)).items(),
    "iterator": lambda items: iter(list(map(decode, items))),
    "int": lambda text: int(text, 16),
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "range": lambda numbers: range(*map(decode, numbers)),
    "complex": lambda parts: complex(*parts),
    "Decimal": _decimal,
    "Fraction": _fraction,
    "array": _array,
    "large": lambda found: Large(str(found)),
    "type": lambda name: _TYPES[name],
    "opaque": lambda kind: Opaque(str(kind)),
}
