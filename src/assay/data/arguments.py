"""Check the arguments of public functions by their annotations, in one way for all of them."""

from __future__ import annotations

import dataclasses
import errno
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from assay.errors import UsageError
from assay.types import Limits

HUGE = 2**63  # no count, seed or time reaches it
MOST_SHOWN = 40  # characters of a value in a message
# The least and the most that a user's limit may be.
BOUNDS = {
    "cpu_s": (0.1, 3600),
    "call_cpu_s": (0, 3600),
    "wall_s": (0.1, 7200),
    "memory_mb": (16, 1 << 20),
    "processes": (1, 4096),
    "output_bytes": (1, 1 << 30),
    "files_mb": (0, 1 << 16),
}
P = ParamSpec("P")
T = TypeVar("T")
Check = Callable[[Any], bool]


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function, which raises UsageError for an argument of another type.

    Parameters without an annotation that can be checked, such as a callable, accept everything.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        for name, value in (*zip(signature.parameters, args, strict=False), *kwargs.items()):
            if name in signature.parameters:
                check_argument(name, value, signature.parameters[name].annotation, function)
        try:
            return function(*args, **kwargs)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            name = show(error.filename)
            raise UsageError(f"{name}: is too long for the name of a file. Change it.") from error

    return call


def check_fields(record: Any, *, has_ranges: bool = False) -> None:
    """Raise UsageError for a field of a dataclass whose value has another type.

    ``has_ranges``: the record says itself which numbers it accepts, infinite and huge ones too.
    """
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.init and not (has_ranges and type(value) in (int, float)):
            check_argument(field.name, value, field.type, type(record))


def check_argument(name: str, value: Any, annotation: Any, owner: Any) -> None:
    """Raise UsageError unless a value has the type of its annotation, as ``owner`` means it.

    A text must also be fit for the name of a file: most are one. Texts in lists may be programs.
    """
    if not _check_of(annotation, owner)(value) or not _is_name(value):
        wanted = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        raise UsageError(f"{name}: {show(value)} is not valid here. Give {wanted}.")
    record = value
    if dataclasses.is_dataclass(record) and type(record).__name__ in RECORDS:
        for field in dataclasses.fields(record):
            inner = getattr(record, field.name)
            check_argument(f"{name}.{field.name}", inner, field.type, type(record))
    if isinstance(value, Limits):
        for limit, (least, most) in BOUNDS.items():
            if not least <= (given := getattr(value, limit)) <= most:
                raise UsageError(
                    f"{name}.{limit}: {given} is not from {least} to {most}. Change it."
                )


# Small records that users build themselves. Their fields are checked where they are used.
RECORDS = ("Limits", "EngineOptions", "Until", "ModelFacts")


def show(value: Any) -> str:
    """Return the beginning of a value as it is written in Python, in one line."""
    try:
        text = repr(value)
    except Exception:  # of a class of the caller's, or a number of more than 4,300 digits
        text = f"a value of type {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


@functools.cache
def _check_of(annotation: Any, owner: Any) -> Check:
    """Return the check for an annotation. One that cannot be evaluated accepts everything."""
    scope = vars(sys.modules[owner.__module__])
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, scope)  # our own source code
        except Exception:  # a name for type checkers only
            return _accept
    return _make_check(annotation)


def _accept(_value: Any) -> bool:
    return True


def _make_check(hint: Any) -> Check:
    if hint is inspect.Parameter.empty:
        return _accept
    origin, args = get_origin(hint), get_args(hint)
    if hint is None or hint is type(None):
        return lambda value: value is None
    if origin is Literal:
        return lambda value: isinstance(value, str) and value in args
    if origin in (Union, types.UnionType):
        checks = [_make_check(one) for one in args]
        return lambda value: any(check(value) for check in checks)
    if hint in ATOMS:
        return ATOMS[hint]
    if origin is tuple and Ellipsis not in args:
        parts = [_make_check(one) for one in args]
        return lambda value: _is_row(value, parts)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, item = map(_make_check, args)
        return lambda value: (
            isinstance(value, Mapping) and all(key(k) and item(v) for k, v in value.items())
        )
    if isinstance(origin, type) and args and origin is not type and hasattr(origin, "__iter__"):
        each = _make_check(args[0])
        return lambda value: _is_series(value, origin, each)
    if not isinstance(hint, type) or typing.is_typeddict(hint):
        return _accept
    if getattr(hint, "_is_protocol", False):
        names = [name for name in vars(hint) if not name.startswith("_")]
        return lambda value: all(hasattr(value, name) for name in names)
    return lambda value: isinstance(value, hint)


def _is_name(value: Any) -> bool:
    """Return whether the system accepts this as the name of a file. Other types than text pass."""
    if not isinstance(value, str | Path):
        return True
    try:
        return b"\0" not in str(value).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False


def _is_number(value: Any) -> bool:
    """Return whether this is a number that fits into a float, and not NaN."""
    return not isinstance(value, bool) and isinstance(value, int | float) and -HUGE < value < HUGE


ATOMS: dict[Any, Check] = {
    int: lambda value: isinstance(value, int) and _is_number(value),
    float: _is_number,
    object: _accept,
    Any: _accept,
}


def _is_row(value: Any, parts: list[Check]) -> bool:
    if not isinstance(value, tuple | list) or len(value) != len(parts):
        return False
    return all(check(item) for check, item in zip(parts, value, strict=True))


def _is_series(value: Any, kind: type, each: Check) -> bool:
    """Return whether this is a series. A text is never meant as one of its characters.

    An iterator is not read here.
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, kind):
        return False
    return not isinstance(value, Collection) or all(map(each, value))
