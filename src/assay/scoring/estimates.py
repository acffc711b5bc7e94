"""Compute pass@k from verdicts. Pure functions."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from assay.scoring.clusters import (
    count_clusters,
    name_clusters,
    standard_error,
    student_interval,
)
from assay.scoring.intervals import LEVEL, clustered_wilson, effective_wilson
from assay.scoring.pass_at_k import Tally, pass_at_k
from assay.types import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from assay.types import SampleKey, Verdict

    Measure = Callable[[int, int, int], float]


STANDARD_KS = (1, 10, 100)


def tally(
    task_ids: Sequence[str],
    verdicts: Iterable[Verdict],
    clusters: Mapping[str, str] = MappingProxyType({}),
) -> list[Tally]:
    """Return the right and judged samples per problem, in the order of ``task_ids``.

    Invalid samples are left out. ``clusters`` has the original of problems that derive from one.
    """
    judged: dict[str, list[bool]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.status != "invalid":
            judged[verdict.task_id].append(verdict.status == "pass")
    return [Tally(t, len(judged[t]), sum(judged[t]), clusters.get(t)) for t in task_ids]


def as_failed(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts with the invalid ones, which ``tally`` leaves out, as failures."""
    return [replace(v, status="fail") if v.status == "invalid" else v for v in verdicts]


@dataclass(frozen=True, slots=True)
class GroupScore:
    """Hold the score of a run if only this group's tests and those before it existed."""

    name: str
    tests_passed: float  # mean share of the group's own tests, over the samples
    estimates: tuple[Estimate, ...]


def group_scores(
    task_ids: Sequence[str],
    verdicts: Sequence[Verdict],
    groups: Sequence[str],
    clusters: Mapping[str, str] = MappingProxyType({}),
) -> list[GroupScore]:
    """Return a score for each group of tests, in their order. The last is the whole score."""
    scores = []
    right = [v.status != "invalid" for v in verdicts]
    for group in groups:
        counts = [v.groups.get(group, (0, 1)) for v in verdicts]
        right = [all_before and c[0] == c[1] for all_before, c in zip(right, counts, strict=True)]
        as_if = [
            replace(v, status="pass" if passed else "fail") if v.status != "invalid" else v
            for v, passed in zip(verdicts, right, strict=True)
        ]
        valid = [c for c, v in zip(counts, verdicts, strict=True) if v.status != "invalid"]
        share = math.fsum(c[0] / c[1] if c[1] else 1 for c in valid) / len(valid) if valid else 0.0
        scores.append(GroupScore(group, share, tuple(estimates(tally(task_ids, as_if, clusters)))))
    return scores


@dataclass(frozen=True, slots=True)
class BestOfN:
    """Hold the score of a run if one of its n samples per problem is chosen."""

    method: str
    n: int
    estimate: Estimate
    without_examples: int  # problems whose prompt showed the method nothing: the first was taken
    chosen: dict[str, int]  # sample by task


def estimate_of_chosen(
    chosen: Mapping[str, int], verdicts: Mapping[SampleKey, Verdict]
) -> Estimate | None:
    """Return the share of chosen samples that are right, one per problem."""
    return estimate(
        [Tally(t, 1, int(verdicts[t, s].status == "pass")) for t, s in chosen.items()], k=1
    )


def estimate(tallies: Iterable[Tally], k: int, measure: Measure = pass_at_k) -> Estimate | None:
    """Return pass@k, averaged over the problems with k judged samples, or None if none has.

    ``measure`` can be another function of n, c and k, such as ``pass_hat_k``.
    """
    enough = [t for t in tallies if t.n >= k]
    if not enough:
        return None
    values = [measure(t.n, t.passed, k) for t in enough]
    low, high = mean_interval(enough, values)
    return Estimate(k, math.fsum(values) / len(values), low, high, len(values))


def mean_interval(
    tallies: Sequence[Tally], values: Sequence[float], level: float = LEVEL
) -> tuple[float, float]:
    """Return the interval of the mean; problems of one cluster count as one draw.

    With clusters the effective size is at most the number of problems. Where nearly all samples
    fail or nearly all pass, that of the samples would cover the truth 80 times in 100 only.
    """
    clusters = name_clusters(tallies)
    if clusters is None:
        return clustered_wilson(values, sum(t.n for t in tallies), level)
    mean = math.fsum(values) / len(values)
    error = standard_error(values, clusters)
    variance = error * error if math.isfinite(error) else 0.0
    return effective_wilson(mean, variance, len(set(clusters)), len(values), level)


def estimates(
    tallies: Sequence[Tally], ks: Iterable[int] = STANDARD_KS, measure: Measure = pass_at_k
) -> list[Estimate]:
    """Return every pass@k of ``ks`` that these samples allow."""
    return [e for k in ks if (e := estimate(tallies, k, measure)) is not None]


@dataclass(frozen=True, slots=True)
class MatchScore:
    """Hold how often the texts of a run equal the expected ones, and how similar they are."""

    exact_match: Estimate
    edit_similarity: Estimate


def match_score(
    samples: Mapping[str, Sequence[tuple[bool, float]]],
    clusters: Mapping[str, str] = MappingProxyType({}),
) -> MatchScore | None:
    """Return the scores of texts from each sample's match and similarity, by task."""
    tallies = [
        Tally(task_id, len(found), sum(match for match, _ in found), clusters.get(task_id))
        for task_id, found in samples.items()
        if found
    ]
    exact = estimate(tallies, k=1)
    if exact is None:
        return None
    means = [math.fsum(share for _, share in samples[t.task_id]) / t.n for t in tallies]
    # Values between 0 and 1 vary less than passes do, so the interval is wide enough.
    low, high = mean_interval(tallies, means)
    similar = Estimate(1, math.fsum(means) / len(means), low, high, len(means))
    return MatchScore(exact, similar)


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
