"""Pass on values of any shape: settings that only an engine knows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A name, and a value as the JSON text that is passed on."""

    name: str
    json: str

    @property
    def value(self) -> Any:
        return json.loads(self.json)


def by_name(values: Iterable[NamedValue]) -> dict[str, Any]:
    """Return the values by name, for a library or a JSON file."""
    return {one.name: one.value for one in values}
