"""Convert dataclasses to JSON and back."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import hashlib
import json
import types
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

HUGE = 2**63  # no count or time reaches it; numbers above may not fit into a float
T = TypeVar("T")
_ATOMS = frozenset((str, int, float, bool, types.NoneType))
_encode = json.JSONEncoder(separators=(",", ":")).encode
_hints = functools.cache(get_type_hints)  # evaluating them is most of reading a record


def to_json(value: Any) -> Any:
    """Return a dataclass as plain data for JSON. Other data is returned unchanged."""
    # Three times as fast as dataclasses.asdict, which copies every string.
    names = _field_names(type(value))  # type: ignore[arg-type]
    return value if names is None else {name: _plain(getattr(value, name)) for name in names}


@functools.cache
def _field_names(cls: type[Any]) -> tuple[str, ...] | None:
    """Return the names of a dataclass's fields, or None for another type."""
    if not dataclasses.is_dataclass(cls):
        return None
    return tuple(f.name for f in dataclasses.fields(cls))


def _plain(value: Any) -> Any:
    """Return a field's value as plain data that shares nothing changeable with it."""
    cls = type(value)
    if cls in _ATOMS:
        return value
    if isinstance(value, list | tuple):
        items = map(_plain, value)
        return cls(*items) if hasattr(cls, "_fields") else cls(items)  # a named tuple
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if _field_names(cls) is None:  # type: ignore[arg-type]
        return copy.deepcopy(value)
    return to_json(value)


def dumps(value: Any) -> str:
    """Return one line of ASCII JSON. Lone surrogates and unusual line ends are escaped."""
    return _encode(to_json(value))


def pretty(value: Any) -> str:
    """Return indented JSON for a file that people read."""
    return json.dumps(to_json(value), indent=2) + "\n"


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON, which does not depend on the order of fields."""
    canonical = json.dumps(to_json(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def from_json(cls: type[T], data: Any) -> T:
    """Build dataclass ``cls``. Raise ValueError for a missing, unknown or mistyped field."""
    return _build(cls, data, strict=True)


def read_known(cls: type[T], data: Any) -> T:
    """Build dataclass ``cls`` from a file that another version may have written.

    Unknown fields are ignored. Raise ValueError for a missing or mistyped field.
    """
    return _build(cls, data, strict=False)


def _build(cls: type[T], data: Any, *, strict: bool) -> T:
    if not isinstance(data, dict):
        raise ValueError(f"expected an object, found {type(data).__name__}")
    hints = _hints(cls)  # type: ignore[arg-type]
    fields = _fields(cls)  # type: ignore[arg-type]
    if strict and (unknown := set(data) - {f.name for f in fields}):
        raise ValueError(f"unknown field {sorted(unknown)[0]!r}")
    values = {}
    for f in fields:
        if f.name in data:
            values[f.name] = _convert(hints[f.name], data[f.name], f.name, strict)
        elif f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
            raise ValueError(f"field {f.name!r} is missing")
    return cls(**values)


def check_numbers(record: Any, signed: tuple[str, ...] = ("logprob", "seed")) -> None:
    """Raise ValueError for a negative or huge number in a field that is not ``signed``."""
    for f in dataclasses.fields(record):
        value = getattr(record, f.name)
        if f.name in signed or not isinstance(value, int | float):
            continue
        if not 0 <= value < HUGE:
            raise ValueError(f"field {f.name!r} has an unexpected value {str(value)[:40]!r}")


@functools.cache
def _fields(cls: type[Any]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(cls)


@functools.cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the origin of a hint and its arguments. To find them takes longer than to convert."""
    return get_origin(hint), get_args(hint)


def _convert(hint: Any, value: Any, name: str, strict: bool) -> Any:
    if hint is str and type(value) is str:  # most fields
        return value
    origin, args = _parts(hint)
    if origin is Literal:
        if value in args:
            return value
    elif origin in (Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        *others, last = (a for a in args if a is not type(None))
        for inner in others:
            with contextlib.suppress(ValueError):
                return _convert(inner, value, name, strict)
        return _convert(last, value, name, strict)
    elif origin is tuple:
        if isinstance(value, list | tuple):
            return tuple(_convert(args[0], item, name, strict) for item in value)
    elif origin is dict:
        if isinstance(value, dict):
            return {key: _convert(args[1], item, name, strict) for key, item in value.items()}
    elif dataclasses.is_dataclass(hint):
        return _build(hint, value, strict=strict)  # type: ignore[arg-type]
    elif hint is float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            with contextlib.suppress(OverflowError):
                return float(value)
    elif isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
        return value
    raise ValueError(f"field {name!r} has an unexpected value {str(value)[:40]!r}")
