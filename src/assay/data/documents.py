"""Read and write JSON files that other versions of assay write too, each by one description.

A dataclass has the fields of a file, and a ``Form`` says where the file differs from it. What the
dataclass does not have stays in its ``Rest``, and is there again when the file is written again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args

from assay.data import codec
from assay.data.codec import FieldError, Place

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rest:
    """Fields of a file that its type here does not have, and fields that the file lacks."""

    unknown: list[tuple[Place, Any]] = field(default_factory=list)
    missing: list[tuple[Place, Any]] = field(default_factory=list)  # with the default of each
    # Values that count as missing, with what would be written instead.
    changed: list[tuple[Place, Any, Any]] = field(default_factory=list)

    def restore(self, content: Any) -> Any:
        """Put the file's own fields into its new content. Later changes are kept."""
        for place, value in self.unknown:
            if isinstance(parent := _parent(content, place), dict):
                parent.setdefault(place[-1], value)
        for place, value in self.missing:
            parent = _parent(content, place)
            if isinstance(parent, dict) and parent.get(place[-1]) == value:
                parent.pop(place[-1], None)
        return content


@dataclass(frozen=True, slots=True)
class Level:
    """Functions for a field, or a class, whose values are spread over several keys of an object."""

    read: Callable[[DocumentReader, dict[str, Any], Place], Any]
    write: Callable[[Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Form:
    """The differences between a dataclass and the object that files have for it."""

    skip: tuple[str, ...] = ()  # fields that are not in the file
    flat: tuple[str, ...] = ()  # fields whose own fields are on the same level
    levels: Mapping[str, Level] = field(default_factory=dict)  # of fields
    whole: Level | None = None  # of the class
    # Properties that are written too, by the field that each follows.
    computed: Mapping[str, str] = field(default_factory=dict)
    # Fields that are left out while this field has its default.
    omit: Mapping[str, str] = field(default_factory=dict)
    omit_none: bool = False
    absent: tuple[object, ...] = ()  # values that count as missing
    # The values of fields that earlier versions did not write.
    defaults: Mapping[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ()  # keys that every version wrote, whatever the defaults are
    # Conditions of values as the file has them.
    checks: Mapping[str, Callable[[Any], bool]] = field(default_factory=dict)


_forms: dict[type[Any], Form] = {}


def describe(**differences: Any) -> Callable[[type[T]], type[T]]:
    """Return a decorator that gives a dataclass its form."""

    def decorate(cls: type[T]) -> type[T]:
        _forms[cls] = Form(**differences)
        return cls

    return decorate


def read_document(cls: type[T], content: Any, **values: Any) -> T:
    """Build a dataclass from a file of any version. Raise FieldError for a mistyped field.

    ``values`` are those of fields that are not in the file. A field ``rest`` is filled here.
    """
    reader = DocumentReader()
    record = reader.build(cls, content, **values)
    if "rest" in _form(cls).skip:
        return dataclasses.replace(record, rest=reader.rest)  # type: ignore[type-var]
    return record


def write_document(value: Any) -> Any:
    """Return the content of a file, as plain data."""
    if type(value) in codec.ATOMS:
        return value
    if isinstance(value, list | tuple):
        return [write_document(item) for item in value]
    if isinstance(value, dict):
        return {name: write_document(item) for name, item in value.items()}
    if codec.field_names(type(value)) is None:
        return value
    content = {name: write_document(inner) for name, inner in lay_out(value).items()}
    rest = getattr(value, "rest", None)
    return rest.restore(content) if isinstance(rest, Rest) else content


def name_place(place: Place) -> str:
    """Return a place as messages name it, such as ``problems[0].n``."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return "".join(parts).removeprefix(".")


def lay_out(value: Any) -> dict[str, Any]:
    """Return the keys that a file has for a dataclass, with values that are not converted yet."""
    form, names = _form(type(value)), codec.field_names(type(value)) or ()
    if form is _PLAIN:
        return {name: getattr(value, name) for name in names}
    return form.whole.write(value) if form.whole else dict(_list_keys(value, form))


def _list_keys(value: Any, form: Form) -> Iterator[tuple[str, Any]]:
    defaults = _defaults(type(value))
    for name in codec.field_names(type(value)) or ():
        inner, decisive = getattr(value, name), form.omit.get(name)
        is_left_out = (form.omit_none and inner is None) or (
            decisive is not None and getattr(value, decisive) == defaults[decisive]
        )
        if name in form.levels:
            yield from form.levels[name].write(inner).items()
        elif name in form.flat:
            yield from lay_out(inner).items() if inner is not None else ()
        elif name not in form.skip and not is_left_out:
            yield name, inner
        if name in form.computed:
            yield form.computed[name], getattr(value, form.computed[name])


@codec.cached
def _defaults(cls: Any) -> dict[str, Any]:
    none = dataclasses.MISSING
    return {
        f.name: f.default if f.default_factory is none else f.default_factory()
        for f in dataclasses.fields(cls)
    }


class DocumentReader(codec.Reader):
    """A reader that notes what a file has and lacks beside the fields of its type."""

    tracks = True

    def __init__(self) -> None:
        super().__init__()
        self.rest = Rest()

    def build(self, cls: type[T], data: Any, place: Place = (), **values: Any) -> T:
        """Build a dataclass from an object, except for fields that have one of ``values``."""
        if not isinstance(data, dict):
            raise FieldError(f"expected an object, found {type(data).__name__}", place)
        form = _form(cls)
        for name in form.required:
            if name not in data:
                raise FieldError(f"field {name!r} is missing", (*place, name))
        for name, check in form.checks.items():
            if name in data and not check(data[name]):
                raise codec.unexpected(name, data[name], (*place, name))
        record: T
        if form.whole:
            record = form.whole.read(self, data, place)
        else:
            record = cls(**(self._read_fields(cls, form, data, place) | values))
        self._compare(record, form, data, place)
        return record

    def _read_fields(
        self, cls: type[Any], form: Form, data: dict[str, Any], place: Place
    ) -> dict[str, Any]:
        known = data
        if form.absent or form.defaults:
            there = {name: v for name, v in data.items() if v not in form.absent}
            known = {**form.defaults, **there}
        others = {*form.levels, *form.flat, *form.skip}
        plain = [f for f in codec.plan(cls) if f.name not in others]
        values = self.read_fields(plain, known, place)
        for name, level in form.levels.items():
            values[name] = level.read(self, data, place)
        for f in codec.plan(cls) if form.flat else ():
            if f.name in form.flat:
                values[f.name] = self._read_flat(f.hint, data, place)
        return values

    def _read_flat(self, hint: Any, data: dict[str, Any], place: Place) -> Any:
        """Return an inner dataclass. It may be None if none of its required fields is there."""
        inner = next(iter(get_args(hint)), hint)
        if (
            inner is not hint
            and not {f.name for f in codec.plan(inner) if f.required} & data.keys()
        ):
            return None
        # Other fields are compared with those of the outer dataclass.
        return inner(**self.read_fields(codec.plan(inner), data, place))

    def _compare(self, record: Any, form: Form, data: dict[str, Any], place: Place) -> None:
        """Note what a file has that would not be written, and what would be written beside that."""
        written = lay_out(record)
        if written.keys() != data.keys():
            rest = self.rest
            rest.unknown.extend(((*place, k), v) for k, v in data.items() if k not in written)
            lacking = ((k, v) for k, v in written.items() if k not in data)
            rest.missing.extend(((*place, k), write_document(v)) for k, v in lacking)
        for name in data if form.absent else ():
            if data[name] in form.absent and name in written and written[name] != data[name]:
                inner = write_document(written[name])
                self.rest.changed.append(((*place, name), data[name], inner))


def _form(cls: type[Any]) -> Form:
    return _forms.get(cls, _PLAIN)


_PLAIN = Form()


def _parent(content: Any, place: Place) -> Any:
    for step in place[:-1]:
        try:
            content = content[step]
        except (KeyError, IndexError, TypeError):
            return None
    return content
