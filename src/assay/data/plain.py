"""Encode plain data across a trust boundary, as JSON: a closed set of types, and never code.

A JSON value stands for itself. Everything else is an object with one key, the name of its type. A
subclass is sent as the data of its base class, so that its own comparisons are never used. Anything
that is not plain data arrives as ``Opaque``, which equals nothing. Large values can be sent as
digests.

The fork server loads this file by its path, so it imports the standard library only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from operator import ne
from typing import Any

from .digests import MOST_DIGITS, digest, is_moderate, is_rational

DEEPEST = 200
LARGE = 1 << 16  # items and characters
MOST_ITEMS = 1_000_000  # of a range, of floats in full, of an iterator, which may have no end
DECIMAL_BITS = 8192  # larger integers are written in hexadecimal, which is never slow
# Limits of a decoded value: a small message must not become a huge or slow value.
ROOM = 2 * MOST_ITEMS  # items
TAG_ROOM = 16  # items that a tagged value counts for: an empty deque takes 624 bytes
MOST_BITS = 8 * LARGE  # of an integer: to compare 4 million bits with a Decimal takes 86 s
AT_ONCE = 2000  # items that are hashed in one step: 0.02 s if all of them collide
# Exceptions of a program that do not cross as they are: they would end loops of its tests, or the
# tests themselves.
STEERING = frozenset(
    ("StopIteration", "StopAsyncIteration", "GeneratorExit", "KeyboardInterrupt", "SystemExit")
)

# The base classes' own methods, because a subclass may have overridden them.
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
    (complex, "complex", lambda c: [complex.__pos__(c).real, complex.__pos__(c).imag]),
)
_DECIMAL = 1 << DECIMAL_BITS
_JSON = {str, float, bool, type(None)}
_JSON_SCALARS = _JSON | {int}
_TYPES = {
    t.__name__: t
    for t in (int, float, complex, bool, str, bytes, list, tuple, dict, set, frozenset, type(None))
}


class Opaque:
    """Stand for a value that was not plain data."""

    __slots__ = ("kind",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __eq__(self, other: object) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<{self.kind}>"


class Large:
    """Stand for a value that is known only by its digest."""

    __slots__ = ("digest",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, found: str) -> None:
        self.digest = found

    def __eq__(self, other: object) -> bool:
        return self.digest == (other.digest if isinstance(other, Large) else digest(other))

    def __repr__(self) -> str:
        return f"<a large value, sha256 {self.digest[:12]}…>"


def encode(value: Any, depth: int = 0) -> Any:
    """Return the value as JSON-ready data."""
    kind = type(value)
    if kind is str or kind is bool or kind is float or value is None:
        return value
    if isinstance(value, int):
        return _encode_int(int.__pos__(value))
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
    if kind is range and not value[MOST_ITEMS:]:
        return {"range": [_encode_int(n) for n in (value.start, value.stop, value.step)]}
    if kind is Large:
        return {"large": value.digest}
    if kind is type and value in _TYPES.values():
        return {"type": value.__name__}
    if is_rational(kind) and is_moderate(value):
        return {kind.__name__: str(value)}
    if kind.__module__ == "numpy" and hasattr(value, "tolist"):
        data = encode(value.tolist(), depth + 1)
        return {"array": data} if kind.__name__ == "ndarray" else data
    if hasattr(kind, "__next__"):
        return {"iterator": [encode(i, depth + 1) for i in islice(value, MOST_ITEMS)]}
    return {"opaque": kind.__name__}


def _encode_int(number: int) -> Any:
    bits = number.bit_length()
    if bits <= DECIMAL_BITS:
        return number
    return {"int": hex(number)} if bits <= MOST_BITS else {"opaque": "int"}


def _is_json(values: list[Any]) -> bool:
    """Return whether all of them are JSON values themselves, without looking at each."""
    kinds = set(map(type, values))
    if kinds == {int}:
        return bool(min(values) > -_DECIMAL and max(values) < _DECIMAL)
    return kinds <= _JSON


def abridged(value: Any) -> Any:
    """Return the value as JSON-ready data, or its digest if it is large.

    Only equal values have the same digest, so there is no tolerance. Lists and tuples of floats
    only are compared with a tolerance, so they are sent in full.
    """
    if _room_left(value, LARGE) >= 0 or (_are_floats(value) and len(value) <= MOST_ITEMS):
        return encode(value)
    return {"large": digest(value)}


def _are_floats(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        issubclass(kind, float) for kind in set(map(type, value))
    )


def _room_left(value: Any, room: int) -> int:
    """Return what is left of ``room`` items and characters. A negative number means too much."""
    if isinstance(value, str | bytes):
        return room - len(value)
    if isinstance(value, int):  # as small as the float that may equal it
        return room - max(0, value.bit_length() - 64) // 8
    if isinstance(value, list | tuple | set | frozenset | dict):
        room -= len(value)
        for item in value.items() if isinstance(value, dict) else value:
            if room < 0:
                break
            room = _room_left(item, room)
    return room


def decode(data: Any) -> Any:
    """Return the value of encoded data. Raise ValueError if it is malformed or huge."""
    return _decode(data, [ROOM])


def _decode(data: Any, room: list[int]) -> Any:
    kind = type(data)
    if kind is list:
        _take(room, len(data) + 1)
        kinds = set(map(type, data))
        if kinds <= _JSON_SCALARS and not (float in kinds and any(map(ne, data, data))):
            return data
        return [_decode(item, room) for item in data]
    if kind is not dict:
        return data if data == data else float("nan")  # each equal to nothing, not even as a part
    _take(room, TAG_ROOM)
    try:
        ((tag, content),) = data.items()
        return _DECODERS[tag](content, room)
    except (TypeError, KeyError, ArithmeticError) as error:
        raise ValueError(f"not encoded data: {error!r}") from error


def _take(room: list[int], items: int) -> None:
    room[0] -= items
    if room[0] < 0:
        raise ValueError(f"not encoded data: more than {ROOM} items")


def has_opaque(data: Any) -> bool:
    """Return whether encoded data contains a value that was not plain data."""
    if isinstance(data, dict):
        return "opaque" in data or any(map(has_opaque, data.values()))
    return isinstance(data, list) and any(map(has_opaque, data))


def _items(content: Any, room: list[int]) -> list[Any]:
    items: list[Any] = _decode(_checked(content, list), room)
    return items


def _in_steps(content: Any, room: list[int]) -> Iterable[Any]:
    """Return items to be hashed: many of them one by one, in steps of Python.

    A program chooses which of its numbers collide, and then n items take n * n comparisons. Between
    steps of Python a signal handler can end that. Within one of C it cannot.
    """
    items = _items(content, room)
    return items if len(items) <= AT_ONCE else (item for item in items)


def _checked(content: Any, kind: type) -> Any:
    if type(content) is not kind:
        raise TypeError(f"{type(content).__name__} in place of {kind.__name__}")
    return content


def _int(text: Any) -> int:
    number = int(_checked(text, str), 16)
    if number.bit_length() > MOST_BITS:
        raise OverflowError("too large an integer")
    return number


def _range(content: Any, room: list[int]) -> range:
    numbers = range(*_items(content, room))
    if numbers[MOST_ITEMS:]:
        raise OverflowError("too long a range")
    _take(room, len(numbers))
    return numbers


def _complex(content: Any) -> complex:
    real, imag = content
    return complex(float.__pos__(real), float.__pos__(imag))


# Imported when needed: every page of a fork server makes every fork more expensive.
def _decimal(text: Any) -> Any:
    from decimal import Decimal

    if len(_checked(text, str)) > 2 * MOST_DIGITS:  # with a sign, a point and an exponent
        raise OverflowError("too large a Decimal")
    number = Decimal(text)
    if not is_moderate(number):
        raise OverflowError("too large a Decimal")
    return number


def _fraction(text: Any) -> Any:
    from fractions import Fraction

    # Not by its own method, which would make an integer of 1e999999999.
    return Fraction(*map(int, _checked(text, str).split("/")))


def _array(content: Any, room: list[int]) -> Any:
    try:
        import numpy  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return Opaque("ndarray")
    items = _decode(content, room)
    lengths = list(_lengths(items))
    _take(room, len(lengths) * max(lengths, default=0))  # every text takes as much as the longest
    return numpy.array(items)


def _lengths(items: Any) -> Iterator[int]:
    if isinstance(items, list | tuple):
        yield from chain.from_iterable(map(_lengths, items))
    else:
        yield len(items) if isinstance(items, str | bytes) else 1


_DECODERS: dict[str, Callable[[Any, list[int]], Any]] = {
    "tuple": lambda items, room: tuple(_items(items, room)),
    "dict": lambda pairs, room: dict(_in_steps(pairs, room)),
    "set": lambda items, room: set(_in_steps(items, room)),
    "frozenset": lambda items, room: frozenset(_in_steps(items, room)),
    # In the way Python builds a set of constants.
    "folded": lambda items, room: set(frozenset(_in_steps(items, room))),
    "deque": lambda items, room: deque(_items(items, room)),
    "keys": lambda items, room: dict.fromkeys(_in_steps(items, room)).keys(),
    "values": lambda items, room: dict(enumerate(_items(items, room))).values(),
    "items": lambda items, room: dict(_in_steps(items, room)).items(),
    "iterator": lambda items, room: iter(_items(items, room)),
    "range": _range,
    "array": _array,
    "int": lambda text, _: _int(text),
    "bytes": lambda text, _: bytes.fromhex(text),
    "bytearray": lambda text, _: bytearray.fromhex(text),
    "complex": lambda parts, _: _complex(parts),
    "Decimal": lambda text, _: _decimal(text),
    "Fraction": lambda text, _: _fraction(text),
    "large": lambda text, _: Large(_checked(text, str)),
    "type": lambda name, _: _TYPES[name],
    "opaque": lambda kind, _: Opaque(_checked(kind, str)),
}
