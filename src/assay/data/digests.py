"""Compute digests of plain data that are equal exactly for equal values.

A digest compares exactly as the decoded value does with ``==``. Numbers of all types compare by
value. A NaN, and anything that is not plain data, equals nothing.

The fork server loads this file by its path, so it imports the standard library only.
"""

from __future__ import annotations

import marshal
import os
import struct
from array import array
from collections import deque
from collections.abc import Callable
from itertools import chain
from typing import Any

PIECE = 1000  # tuples written at a time
MOST_DIGITS = 5000  # of a Decimal, and of its exponent's absolute value
RATIONALS = {("decimal", "Decimal"), ("fractions", "Fraction")}  # known without their modules

Update = Callable[[bytes], None]
_TEXTS = {str, type(None)}  # equal only to their own kind
_NUMBERS, _EXACT = {int, float, bool}, 2.0**53  # equal to each other as floats, up to here
_MINUS_ZERO = struct.pack("d", -0.0)  # equal to 0.0, which it becomes when that is added
_head, _double = struct.Struct("<cQ").pack, struct.Struct("<cd").pack


class _Pair(tuple[bytes, Any, Any]):
    """Represent a number that equals no int and no float: a letter for its kind, and its parts."""

    __slots__ = ()


class _Unequal:
    """Stand for a value that equals nothing."""


def digest(value: Any) -> str:
    """Return the same text for equal values, and different texts for others."""
    return _hash(value).hex()


def is_rational(kind: type) -> bool:
    """Return whether the type is Decimal or Fraction, without importing either."""
    return (kind.__module__, kind.__name__) in RATIONALS


def is_moderate(number: Any) -> bool:
    """Return whether a Decimal is small as an integer too. A Fraction shows how large it is."""
    if not hasattr(number, "adjusted") or not number.is_finite():
        return True
    return len(number.as_tuple().digits) <= MOST_DIGITS and abs(number.adjusted()) <= MOST_DIGITS


def _hash(value: Any) -> bytes:
    import hashlib

    sha256 = hashlib.sha256()
    _feed(sha256.update, value)
    return sha256.digest()


def _feed(update: Update, value: Any) -> None:
    """Feed a hash with a letter for a value's kind, its length if that varies, and its parts."""
    value = _base(value)
    _FEEDERS[type(value)](update, value)


def _base(value: Any) -> Any:
    """Return the value as it is once decoded. A number is an int or a float if it equals one."""
    kind = type(value)
    if kind in _FEEDERS:
        return value
    for base, convert in _BASES:
        if isinstance(value, base):
            return convert(value)
    if is_rational(kind) and is_moderate(value):
        return _reduced(value)
    if kind.__module__ == "numpy" and kind.__name__ != "ndarray" and hasattr(value, "tolist"):
        return _base(value.tolist())
    return _Unequal()


def _reduced(number: Any) -> Any:
    """Return a Decimal or Fraction as an int or a float if it equals one."""
    try:
        above, below = number.as_integer_ratio()
    except (ValueError, OverflowError):  # a NaN, an infinity
        return _Unequal() if number.is_nan() else float(number)
    if below == 1:
        return above
    try:
        nearest = float(number)
    except OverflowError:
        nearest = 0.0
    return nearest if nearest == number else _Pair((b"/", above, below))


def _real(value: complex) -> Any:
    number = complex.__pos__(value)
    return _Pair((b"c", number.real, number.imag)) if number.imag else number.real


def _number(value: float) -> bytes:
    if value != value:
        return _unequal()
    try:
        nearest = float(value)
    except OverflowError:
        return marshal.dumps(value, 0)
    return _double(b"d", nearest + 0.0) if nearest == value else marshal.dumps(value, 0)


def _unequal() -> bytes:
    return b"?" + os.urandom(16)


def _feed_items(update: Update, letter: bytes, items: Any) -> None:
    """Feed a sequence's items, at once if they are alike, which equal items always are."""
    kinds = set(map(type, items))
    if not kinds <= _FED:
        items = [_base(item) for item in items]
        kinds = set(map(type, items))
    update(_head(letter, len(items)))
    if kinds <= _TEXTS:
        update(b"T" + _marshalled(items))
    elif kinds <= _NUMBERS and _are_doubles(items):
        data = array("d", items).tobytes()
        if _MINUS_ZERO in data:
            data = array("d", [item + 0.0 for item in items]).tobytes()
        update(b"D" + data)
    elif kinds == {tuple} and _are_texts(inner := set(map(type, chain.from_iterable(items)))):
        if not inner <= _TEXTS:
            items = [tuple(map(_base, item)) for item in items]
        update(b"P")
        for start in range(0, len(items), PIECE):
            update(_marshalled(items[start : start + PIECE]))
    else:
        update(b"I")
        for item in items:
            _feed(update, item)


def _are_doubles(numbers: Any) -> bool:
    """Return whether all are exact as floats and none is a NaN, which only the sum shows."""
    if not (min(numbers) >= -_EXACT and max(numbers) <= _EXACT):
        return False
    total = sum(numbers)
    return bool(total == total)


def _are_texts(kinds: set[type]) -> bool:
    return all(issubclass(kind, str) or kind is type(None) for kind in kinds)


def _marshalled(values: Any) -> bytes:
    return marshal.dumps(tuple(values), 0)  # a version that writes equal values alike


def _feed_bytes(update: Update, letter: bytes, data: bytes) -> None:
    update(_head(letter, len(data)) + data)


def _feed_set(update: Update, letter: bytes, items: Any) -> None:
    _feed_bytes(update, letter, b"".join(sorted(map(_hash, items))))


_FEEDERS: dict[type, Callable[[Update, Any], None]] = {
    list: lambda update, items: _feed_items(update, b"[", items),
    tuple: lambda update, items: _feed_items(update, b"(", items),
    deque: lambda update, items: _feed_items(update, b"q", list(items)),
    dict: lambda update, pairs: _feed_set(update, b":", pairs.items()),
    **dict.fromkeys(
        (set, frozenset, type({}.keys()), type({}.items())),  # equal to each other
        lambda update, items: _feed_set(update, b"{", items),
    ),
    str: lambda update, text: _feed_bytes(update, b"S", text.encode("utf-8", "surrogatepass")),
    bytes: lambda update, data: _feed_bytes(update, b"B", data),
    **dict.fromkeys(_NUMBERS, lambda update, number: update(_number(number))),
    _Pair: lambda update, pair: update(pair[0] + _number(pair[1]) + _number(pair[2])),
    range: lambda update, numbers: update(b"R" + _hash([len(numbers), *numbers[:2]])),
    type(None): lambda update, _: update(b"N"),
    _Unequal: lambda update, _: update(_unequal()),
}
_FED = _FEEDERS.keys()
# The base class's own methods, because a subclass may have overridden them.
_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__pos__),
    (float, float.__pos__),
    (str, str.__str__),
    (tuple, lambda items: (*tuple.__iter__(items),)),
    (list, lambda items: [*list.__iter__(items)]),
    (dict, lambda pairs: dict(dict.items(pairs))),
    (set, lambda items: {*set.__iter__(items)}),
    (frozenset, lambda items: {*frozenset.__iter__(items)}),
    (deque, lambda items: deque(deque.__iter__(items))),
    (bytes, lambda data: bytes(memoryview(data))),
    (bytearray, lambda data: bytes(memoryview(data))),
    (complex, _real),
)
