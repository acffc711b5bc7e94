"""Convert dataclasses to JSON and back."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import hashlib
import json
import types
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

HUGE = 2**63  # no count or time reaches it; numbers above may not fit into a float
T = TypeVar("T")
Place = tuple[str | int, ...]  # the keys and positions that lead to a value
ATOMS = frozenset((str, int, float, bool, types.NoneType))
_encode = json.JSONEncoder(separators=(",", ":")).encode


def cached(function: Callable[[Any], T]) -> Callable[[Any], T]:
    """Cache what a function returns for a class. Type checkers do not count classes as hashable."""
    return functools.cache(function)


def to_json(value: Any) -> Any:
    """Return a dataclass as plain data for JSON. Other data is returned unchanged."""
    # Three times as fast as dataclasses.asdict, which copies every string.
    names = field_names(type(value))
    return value if names is None else {name: _plain(getattr(value, name)) for name in names}


@cached
def field_names(cls: Any) -> tuple[str, ...] | None:
    """Return the names of a dataclass's fields, or None for another type."""
    if not dataclasses.is_dataclass(cls):
        return None
    return tuple(f.name for f in dataclasses.fields(cls))


def _plain(value: Any) -> Any:
    """Return a field's value as plain data that shares nothing changeable with it."""
    cls = type(value)
    if cls in ATOMS:
        return value
    if isinstance(value, list | tuple):
        items = map(_plain, value)
        return cls(*items) if hasattr(cls, "_fields") else cls(items)  # a named tuple
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if field_names(cls) is None:
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


class FieldError(ValueError):
    """A field that is missing or has an unexpected value, with its place in the data."""

    def __init__(self, message: str, place: Place) -> None:
        super().__init__(message)
        self.place = place


def from_json(cls: type[T], data: Any) -> T:
    """Build dataclass ``cls``. Raise ValueError for a missing, unknown or mistyped field."""
    return _STRICT.build(cls, data)


def read_known(cls: type[T], data: Any) -> T:
    """Build dataclass ``cls`` from a file that another version may have written.

    Unknown fields are ignored. Raise ValueError for a missing or mistyped field.
    """
    return _LENIENT.build(cls, data)


def check_numbers(record: Any, signed: tuple[str, ...] = ("logprob", "seed")) -> None:
    """Raise ValueError for a negative or huge number in a field that is not ``signed``."""
    for f in dataclasses.fields(record):
        value = getattr(record, f.name)
        if f.name in signed or not isinstance(value, int | float):
            continue
        if not 0 <= value < HUGE:
            raise unexpected(f.name, value)


def unexpected(name: str, value: object, place: Place = ()) -> FieldError:
    """Return the error for a value that a field cannot have."""
    return FieldError(f"field {name!r} has an unexpected value {str(value)[:40]!r}", place)


@functools.cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the origin of a hint and its arguments. To find them takes longer than to convert."""
    return get_origin(hint), get_args(hint)


class FieldPlan(NamedTuple):
    """A field of a dataclass, as a reader needs it."""

    name: str
    hint: Any
    required: bool


@cached
def plan(cls: Any) -> tuple[FieldPlan, ...]:
    """Return the fields of a dataclass. Evaluating type hints is most of reading a record."""
    hints, none = get_type_hints(cls), dataclasses.MISSING
    return tuple(
        FieldPlan(f.name, hints[f.name], f.default is none and f.default_factory is none)
        for f in dataclasses.fields(cls)
    )


@cached
def _name_set(cls: Any) -> frozenset[str]:
    return frozenset(f.name for f in plan(cls))


class Reader:
    """A reader of plain data. One that ``tracks`` knows the place of every value in a file."""

    tracks = False

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict

    def build(self, cls: type[T], data: Any, place: Place = ()) -> T:
        """Build a dataclass from an object. Raise FieldError."""
        if not isinstance(data, dict):
            raise FieldError(f"expected an object, found {type(data).__name__}", place)
        fields = plan(cls)
        if self._strict and (unknown := data.keys() - _name_set(cls)):
            raise FieldError(f"unknown field {sorted(unknown)[0]!r}", place)
        return cls(**self.read_fields(fields, data, place))

    def read_fields(
        self, fields: Iterable[FieldPlan], data: dict[str, Any], place: Place
    ) -> dict[str, Any]:
        """Return the values of those fields that are there. Raise FieldError if one must be."""
        values = {}
        for name, hint, required in fields:
            inner = (*place, name) if self.tracks else place
            if name in data:
                values[name] = self.convert(hint, data[name], name, inner)
            elif required:
                raise FieldError(f"field {name!r} is missing", inner)
        return values

    def convert(self, hint: Any, value: Any, name: str, place: Place) -> Any:
        """Return a value as its type has it. Raise FieldError if it has another type."""
        if type(value) is hint and hint in ATOMS:  # most fields
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
                    return self.convert(inner, value, name, place)
            return self.convert(last, value, name, place)
        elif origin is tuple:
            if isinstance(value, list | tuple):
                return tuple(
                    self.convert(args[0], item, name, (*place, number) if self.tracks else place)
                    for number, item in enumerate(value)
                )
        elif origin is dict:
            if isinstance(value, dict):
                return {
                    key: self.convert(args[1], item, name, (*place, key) if self.tracks else place)
                    for key, item in value.items()
                }
        elif dataclasses.is_dataclass(hint):
            return self.build(hint, value, place)  # type: ignore[arg-type]
        elif hint is float:
            if isinstance(value, int | float) and not isinstance(value, bool):
                with contextlib.suppress(OverflowError):
                    return float(value)
        elif isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
            return value
        raise unexpected(name, value, place)


_STRICT, _LENIENT = Reader(strict=True), Reader()
