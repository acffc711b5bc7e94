"""Compute the mean of a number that programs have beside their verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.scoring.clusters import count_clusters, student_interval
from assay.scoring.intervals import LEVEL


@dataclass(frozen=True, slots=True)
class MeasureScore:
    """Hold the mean over problems of the mean over their programs.

    One cluster of problems has no interval. ``unmeasured`` counts programs without a number.
    """

    value: float
    low: float | None
    high: float | None
    problems: int
    samples: int
    unmeasured: int = 0
    level: float = LEVEL
    method: str = "t-clustered"


def measure_score(
    numbers: Mapping[str, Sequence[float | None]], clusters: Mapping[str, str]
) -> MeasureScore | None:
    """Return the mean of numbers that are at least 0, by task; None without any number."""
    known = {task: [n for n in found if n is not None] for task, found in numbers.items()}
    means = {task: math.fsum(found) / len(found) for task, found in known.items() if found}
    if not means:
        return None
    values = list(means.values())
    names = [(clusters.get(task, task), task in clusters) for task in means]
    low, high = student_interval(values, names)
    counted = count_clusters(values, names) > 1
    samples = sum(map(len, known.values()))
    return MeasureScore(
        value=math.fsum(values) / len(values),
        low=max(0.0, low) if counted else None,
        high=high if counted else None,
        problems=len(values),
        samples=samples,
        unmeasured=sum(map(len, numbers.values())) - samples,
    )
