"""Check files that users write by hand. All mistakes are reported together, with their lines."""

from __future__ import annotations

import datetime
import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from assay.data.yaml_files import LocatedData, Place
from assay.errors import AssayError, MistakesError

T = TypeVar("T")
NAME = re.compile(r"(?!\.)[\w.+-]{1,100}", re.ASCII)  # fit for the name of a file or folder


@dataclass(slots=True)
class Mistakes:
    """Everything that is wrong with a file, with its lines."""

    name: str  # of the file, or of what else is wrong
    error: type[MistakesError] = MistakesError
    found: dict[tuple[int, str], None] = field(default_factory=dict)
    others: list[Mistakes] = field(default_factory=list)  # of files that this one names

    def attempt(self, line: int, read: Callable[..., T], *arguments: object) -> T | None:
        """Return what a function returns for these arguments, or None after a mistake."""
        try:
            return read(*arguments)
        except MistakesError as error:
            for text in error.problems:
                self.add(line, f"{error.name}: {text}")
        except (AssayError, ValueError) as error:
            self.add(line, f"{str(error).rstrip('.')}.")
        return None

    def add(self, line: int, text: str) -> None:
        """Add a mistake. Line 0 means no line in particular."""
        self.found[line, text] = None

    def report(self) -> None:
        """Raise the error if there are mistakes."""
        lines = [_in_line(number, text) for number, text in sorted(self.found)]
        for other in self.others:
            lines += [f"{other.name}: {_in_line(n, text)}" for n, text in sorted(other.found)]
        if lines:
            raise self.error(self.name, tuple(lines))


def _in_line(number: int, text: str) -> str:
    return f"Line {number}: {text}" if number else text


@dataclass(frozen=True, slots=True)
class LocatedMapping:
    """A mapping of a file and its place."""

    place: Place
    values: Mapping[str, Any]


class FileChecker:
    """A reader of the parts of a file that collects the mistakes."""

    def __init__(self, found: LocatedData, mistakes: Mistakes) -> None:
        self.found, self.mistakes = found, mistakes
        for place, line in found.repeated:
            mistakes.add(line, f"'{place[-1]}' occurs twice. Drop one.")

    def add(self, place: Place, mistake: str) -> None:
        """Add a mistake at a place of the file."""
        self.mistakes.add(self.found.line(place), mistake)

    def attempt(self, place: Place, read: Callable[..., T], *arguments: object) -> T | None:
        """Return what a function returns for these arguments, or None after a mistake."""
        return self.mistakes.attempt(self.found.line(place), read, *arguments)

    def entry(self, place: Place, value: Any, keys: Iterable[str]) -> LocatedMapping:
        """Return a mapping that may have these keys."""
        found = LocatedMapping(place, self.mapping(place, value))
        self.check_keys(found, keys)
        return found

    def check_keys(self, entry: LocatedMapping, keys: Iterable[str]) -> None:
        """Add a mistake for every other key."""
        known = tuple(keys)
        for name in entry.values:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f" Did you mean '{near[0]}'?" if near else f" Known: {', '.join(known)}."
                self.add((*entry.place, name), f"unknown key '{name}'.{hint}")

    def check_names(self, what: str, names: Iterable[tuple[str, int]], advice: str) -> None:
        """Add a mistake for every name that is there again. Names come with their lines."""
        seen: dict[str, int] = {}
        for name, line in names:
            if name in seen:
                text = f"the {what} '{name}' is also in line {seen[name]}. {advice}."
                self.mistakes.add(line, text)
            seen.setdefault(name, line)

    def mapping(self, place: Place, value: Any) -> Mapping[str, Any]:
        """Return the value if it is a mapping, and otherwise an empty one."""
        if isinstance(value, dict):
            return value
        self.add(place, f"{shown(value)} is not a mapping. Write 'key: value' lines.")
        return {}

    def items(self, place: Place, value: Any) -> list[Any]:
        """Return the value if it is a list, and otherwise an empty one."""
        if isinstance(value, list):
            return value
        self.add(place, f"{shown(value)} is not a list. Write '- item' lines.")
        return []

    def text(self, place: Place, value: str) -> str:
        """Return a text if it can be written to a file, and otherwise an empty one."""
        try:
            value.encode()
        except UnicodeEncodeError:
            what = "has a surrogate, which is not a character"
            self.add(place, f"{place[-1]}: {what}. Remove it.")
            return ""
        return value


def as_day(value: Any) -> Any:
    """Return a day as text. YAML reads 2024-08-01 as a date."""
    is_day = isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
    return value.isoformat() if is_day else value


def shown(value: Any) -> str:
    """Return the beginning of a value as it is written in Python."""
    return repr(value)[:40]
