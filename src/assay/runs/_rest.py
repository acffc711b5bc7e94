"""Keep fields that other versions wrote into a file when the file is written again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from assay.data import codec

Place = tuple[str | int, ...]  # the keys and positions that lead to a value


@dataclass(frozen=True, slots=True)
class Rest:
    """Fields of a file that its type here does not have, and fields that the file lacks."""

    unknown: tuple[tuple[Place, Any], ...] = ()
    missing: tuple[tuple[Place, Any], ...] = ()  # with the default of each
    changed: tuple[tuple[Place, Any, Any], ...] = ()  # with what would be written instead

    def restore(self, rendered: Any) -> Any:
        """Return the content with the file's own fields. Later changes are kept."""
        content = json.loads(codec.dumps(rendered))
        for place, value in self.unknown:
            if isinstance(parent := _parent(content, place), dict):
                parent.setdefault(place[-1], value)
        for place, value in self.missing:
            parent = _parent(content, place)
            if isinstance(parent, dict) and parent.get(place[-1]) == value:
                parent.pop(place[-1], None)
        return content


def find_rest(content: Any, rendered: Any) -> Rest:
    """Compare a file's content with what is written for its typed form."""
    unknown: list[tuple[Place, Any]] = []
    missing: list[tuple[Place, Any]] = []
    changed: list[tuple[Place, Any, Any]] = []

    def visit(there: Any, here: Any, place: Place) -> None:
        if there == here:  # mostly; several times as fast as to look at each field
            return
        if isinstance(there, dict) and isinstance(here, dict):
            unknown.extend(((*place, k), v) for k, v in there.items() if k not in here)
            missing.extend(((*place, k), v) for k, v in here.items() if k not in there)
            for key in there.keys() & here.keys():
                visit(there[key], here[key], (*place, key))
        elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
            for number, (left, right) in enumerate(zip(there, here, strict=True)):
                visit(left, right, (*place, number))
        else:
            changed.append((place, there, here))

    visit(content, json.loads(codec.dumps(rendered)), ())
    return Rest(tuple(unknown), tuple(missing), tuple(changed))


def name_place(place: Place) -> str:
    """Return a place as messages name it, such as ``problems[0].n``."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return "".join(parts).removeprefix(".")


def _parent(content: Any, place: Place) -> Any:
    for step in place[:-1]:
        try:
            content = content[step]
        except (KeyError, IndexError, TypeError):
            return None
    return content
