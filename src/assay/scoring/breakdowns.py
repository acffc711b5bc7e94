"""Break a score down by labels of its problems, such as the type of a bug. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.scoring.estimates import estimates
from assay.scoring.pass_at_k import Tally
from assay.types import Estimate


@dataclass(frozen=True, slots=True)
class BreakdownScore:
    """Hold the score on the problems whose label has this value."""

    label: str
    value: str
    problems: int
    estimates: tuple[Estimate, ...]


def break_down(
    tallies: Sequence[Tally], labels: Mapping[str, Mapping[str, str]]
) -> list[BreakdownScore]:
    """Return a score for each value of each label, by label and value.

    ``labels`` has the labels of every task. A task without a label is not part of its breakdown.
    """
    found: dict[tuple[str, str], list[Tally]] = {}
    for tally in tallies:
        for label, value in labels.get(tally.task_id, {}).items():
            found.setdefault((label, value), []).append(tally)
    return [
        BreakdownScore(*key, len(members), tuple(estimates(members)))
        for key, members in sorted(found.items())
    ]
