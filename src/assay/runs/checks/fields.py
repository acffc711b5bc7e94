"""Find fields that a results file lacks, though every file of its version has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from assay.data.codec import Place
from assay.data.documents import name_place
from assay.errors import RunError
from assay.protocol import VERSION as PROTOCOL_VERSION
from assay.protocol import PromptSettings
from assay.runs.marks import list_marks
from assay.runs.result import Result
from assay.scoring import Tally, estimates
from assay.types import Decoding

# Files of earlier versions lack these; where they are None, they are not written.
ALWAYS = ("coverage", "model_identity")
PASS_AT = "pass_at_"


def is_current(result: Result) -> bool:
    """Return whether the version of the protocol is the one that is written here."""
    return result.protocol.version == PROTOCOL_VERSION


def refuse_missing(content: Any, result: Result, tallies: list[Tally], remedy: str) -> None:
    """Raise RunError if a file of this version lacks what all of them have.

    A field that was deleted must not count as one that an earlier version did not write: other
    fields would then be believed without a check.
    """
    missing = next(_find_missing(content, result, tallies), "") if is_current(result) else ""
    if missing:
        raise RunError(
            f"{result.path}: {missing} is missing, and every file of version {PROTOCOL_VERSION} of "
            f"the protocol has it. {remedy}"
        )


def _find_missing(content: Any, result: Result, tallies: list[Tally]) -> Iterator[str]:
    for name in ALWAYS:
        if not content.get(name):
            yield name
    rest = result.rest
    for place, _ in rest.missing:
        yield name_place(place)
    for place, _ in rest.unknown:
        if str(place[-1]).startswith(PASS_AT):  # without the other of value and interval
            yield name_place((*place[:-1], "intervals", place[-1]))
    scores = content["results"]
    for found in estimates(tallies):
        yield from _find_score(("results",), scores, f"{PASS_AT}{found.k}")
        for name, group in (scores.get("groups") or {}).items():
            yield from _find_score(("results", "groups", name), group, f"{PASS_AT}{found.k}")
    if scores["invalid"] and not scores.get("left_out_as_failed"):
        yield "results.left_out_as_failed"
    if (best := scores.get("best_of_n")) and not best.get("chosen"):
        yield "results.best_of_n.chosen"
    for field in (*fields(Decoding), *fields(PromptSettings)):
        if field.name not in content["config"]:
            yield f"config.{field.name}"


def list_obstacles(result: Result) -> list[str]:
    """Return why a result is not publishable, from its other fields."""
    marks = list_marks(replace(result, publishable=True))
    return [one.detail for one in marks if one.mark.blocks]


def _find_score(place: Place, scores: Any, name: str) -> Iterator[str]:
    if scores.get(name) is None:
        yield name_place((*place, name))
    if name not in (scores.get("intervals") or {}):
        yield name_place((*place, "intervals", name))
