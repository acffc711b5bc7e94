"""Describe how an engine runs, for the results. Each engine has its own type."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from assay.models.named_values import NamedValue, by_name


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """Version, device, batching. A fact that is None is not known (yet)."""

    def to_json(self) -> dict[str, Any]:
        """Return the known facts by name, in the order of the fields."""
        found = ((field.name, getattr(self, field.name)) for field in dataclasses.fields(self))
        return {name: _plain(value) for name, value in found if value is not None}

    def of_scoring(self) -> EngineFacts:
        """Return the facts that hold while given tokens are scored."""
        return self


def _plain(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    named = [one for one in value if isinstance(one, NamedValue)]
    return by_name(named) if named else list(value)
