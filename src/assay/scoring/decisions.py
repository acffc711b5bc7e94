"""Decide from intervals and p-values: equivalence, families of tests, groups of models."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from assay.scoring.intervals import VERSION, Interval

Decision = Literal["better", "worse", "equivalent", "undecided"]
ALPHA = 0.05
MARGIN = 0.02  # of equivalence: two points


def decide(interval: Interval, margin: float = MARGIN) -> Decision:
    """Return what an interval of the difference B - A shows about B.

    B is ``better`` or ``worse`` if the interval excludes 0, ``equivalent`` if all of it is within
    the margin, and ``undecided`` otherwise. A small difference can be shown and be within the
    margin: ``within`` tells.
    """
    if interval.low > 0:
        return "better"
    if interval.high < 0:
        return "worse"
    return "equivalent" if within(interval, margin) else "undecided"


def decide_in_family(
    interval: Interval,
    difference: float,
    adjusted_p_value: float,
    margin: float = MARGIN,
    alpha: float = ALPHA,
) -> Decision:
    """Return what one of several comparisons shows, with one chance of error for all of them.

    A difference is shown by its adjusted p-value, which finds more than corrected intervals do.
    Equivalence is shown by the interval, which must have the corrected level.
    """
    if adjusted_p_value <= alpha and difference:
        return "better" if difference > 0 else "worse"
    return "equivalent" if within(interval, margin) else "undecided"


def within(interval: Interval, margin: float) -> bool:
    """Return whether all of the interval is inside the margin."""
    return -margin < interval.low and interval.high < margin


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's method, in the same order.

    Calling those at most alpha significant makes any false claim in the family with a probability
    of at most alpha, however the tests depend on each other.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


@dataclass(frozen=True, slots=True)
class TestedPair:
    """Two models, the p-value of their difference, and that after Holm's correction."""

    a: str
    b: str
    p_value: float
    adjusted_p_value: float


@dataclass(frozen=True, slots=True)
class ModelGroups:
    """Models in the order of their scores, with letters. Those that share one are alike so far.

    ``pairs`` has all pairs; their p-values are corrected together.
    """

    letters: dict[str, str]
    pairs: tuple[TestedPair, ...]
    alpha: float = ALPHA
    method: str = "holm-all-pairs"
    version: int = VERSION


def group_models(
    scores: Mapping[str, float], p_values: Mapping[tuple[str, str], float], alpha: float = ALPHA
) -> ModelGroups:
    """Return letters for models that cannot be distinguished.

    ``p_values`` has one of the two orders of every pair. Two models share a letter exactly if their
    difference is not significant after Holm's correction over all pairs. Being in one group does
    not mean being equal.
    """
    adjusted = holm(list(p_values.values()))
    pairs = tuple(
        TestedPair(*names, p, corrected)
        for (names, p), corrected in zip(p_values.items(), adjusted, strict=True)
    )
    names = sorted(scores, key=lambda name: -scores[name])
    different = [frozenset((one.a, one.b)) for one in pairs if one.adjusted_p_value <= alpha]
    groups = _split_groups(names, different)
    groups.sort(key=lambda group: sorted(map(names.index, group)))
    marks = _letters(len(groups))
    letters = {
        name: "".join(mark for mark, group in zip(marks, groups, strict=True) if name in group)
        for name in names
    }
    return ModelGroups(letters, pairs, alpha)


def _split_groups(
    names: Sequence[str], different: Iterable[frozenset[str]]
) -> list[frozenset[str]]:
    """Return the largest sets of names without a different pair (Piepho 2004: insert, absorb)."""
    groups = [frozenset(names)]
    for pair in different:
        split: list[frozenset[str]] = []
        for group in groups:
            split += [group - {name} for name in pair] if pair <= group else [group]
        unique = list(dict.fromkeys(split))
        groups = [g for g in unique if not any(g < other for other in unique)]
    return groups


def _letters(count: int) -> list[str]:
    """Return a, b, ..., z, a1, b1, ..."""
    alphabet = string.ascii_lowercase
    return [f"{alphabet[i % 26]}{i // 26 or ''}" for i in range(count)]
