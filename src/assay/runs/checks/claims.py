"""Compare values of a file with those that follow from others, and refuse contradictions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assay.data import codec
from assay.errors import RunError
from assay.protocol import VERSION as PROTOCOL_VERSION
from assay.runs.marks import ADDED_IN_ROUNDS
from assay.runs.result import Result

REMEDY = "Restore it from a copy, or repeat the command that wrote it."
# Of a sum in another order, or a number that was rounded when it was written.
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Claim:
    """A field of a file, with its value and the one that follows from other fields."""

    field: str
    recorded: object
    recomputed: object

    @property
    def holds(self) -> bool:
        """Return whether both are equal, apart from rounding."""
        return _is_same(self.recorded, self.recomputed)


def refuse_contradictions(
    path: object, claims: Iterable[Claim], source: str, remedy: str = REMEDY
) -> None:
    """Raise RunError for the first claim that does not hold. ``source`` is what denies it."""
    for claim in claims:
        if not claim.holds:
            raise RunError(
                f"{path}: contradicts itself: {claim.field} is {_show(claim.recorded)}, but "
                f"{source} {_show(claim.recomputed)}. {remedy}"
            )


def is_current(result: Result) -> bool:
    """Return whether the version of the protocol is the one that is written here."""
    return result.protocol.version == PROTOCOL_VERSION


def count_rounds(result: Result) -> int:
    """Return the samples per problem that a result counts, if they were added in rounds; else 0."""
    coverage = result.coverage
    in_rounds = result.sequential is not None or ADDED_IN_ROUNDS in result.not_publishable
    if coverage is None or not coverage.selected_problems or not in_rounds:
        return 0
    return coverage.samples // coverage.selected_problems


def protocol_claims(content: Mapping[str, Any]) -> Iterator[Claim]:
    """Yield the hash, which every version computes from all other fields as the file has them."""
    fields = {name: value for name, value in content.items() if name != "hash"}
    yield Claim("protocol.hash", content["hash"], codec.digest(fields))


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_is_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_is_same, a, b))
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return a is b
    if isinstance(a, float) or isinstance(b, float):
        numbers = isinstance(a, int | float) and isinstance(b, int | float)
        return numbers and math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(a == b)


def _show(value: object) -> str:
    text = codec.dumps(value) if isinstance(value, dict | list | tuple) else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
