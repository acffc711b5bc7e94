"""Compare two models by their samples per problem: difference, interval, test and decision."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from assay.scoring.clusters import (
    Clusters,
    count_clusters,
    design_effect,
    difference_interval,
    name_clusters,
    standard_error,
)
from assay.scoring.decisions import (
    ALPHA,
    MARGIN,
    Decision,
    ModelGroups,
    decide,
    group_models,
    within,
)
from assay.scoring.distributions import (
    normal_quantile,
    student_t_cdf,
    student_t_quantile,
)
from assay.scoring.estimates import mean_interval
from assay.scoring.intervals import LEVEL, Interval
from assay.scoring.noise import TwoNoises, two_noises
from assay.scoring.paired import (
    PairedTable,
    mid_p,
    newcombe,
    score_equivalence_p_value,
    sign_test,
    tango,
)
from assay.scoring.pass_at_k import Tally
from assay.scoring.permutation import Significance, sign_flip_test
from assay.scoring.power import POWER, detectable_difference

Pairs = Sequence[tuple[Tally, Tally]]
UNPAIRED_VERSION = 2  # since clusters count, and constant groups are tested exactly


@dataclass(frozen=True, slots=True)
class Detectable:
    """The smallest difference that data like these show, with this power and level."""

    difference: float | None  # none: not even the largest
    power: float
    alpha: float
    method: str


@dataclass(frozen=True, slots=True)
class Statistics:
    """Hold what two models' samples show about the difference B - A of mean pass shares."""

    problems: int
    clusters: int  # equal to the problems unless some derive from the same original
    design_effect: float  # how many times the clusters enlarge the variance
    samples: tuple[int, int]  # most samples per problem of A and B
    difference: float
    interval: Interval
    test: Significance
    mid_p: float | None  # with one sample per problem
    margin: float
    decision: Decision
    is_within_margin: bool
    equivalence: Significance | None  # two one-sided tests; none: not computed
    noise: TwoNoises | None  # with several samples per problem
    detectable: Detectable


def compare_pairs(pairs: Pairs, margin: float = MARGIN, level: float = LEVEL) -> Statistics:
    """Compare B with A over problems that both have samples of."""
    clusters = _pair_clusters(pairs)
    single = clusters is None and all(a.n == b.n == 1 for a, b in pairs)
    found = _compare_single(pairs, level) if single else _compare_shares(pairs, clusters, level)
    interval, test, middle, noise, detectable = found
    deltas = _deltas(pairs)
    return Statistics(
        problems=len(pairs),
        clusters=count_clusters(pairs, clusters),
        design_effect=1.0 if clusters is None else design_effect(deltas, clusters),
        samples=(max(a.n for a, _ in pairs), max(b.n for _, b in pairs)),
        difference=math.fsum(deltas) / len(deltas),
        interval=interval,
        test=test,
        mid_p=middle,
        margin=margin,
        decision=decide(interval, margin),
        is_within_margin=within(interval, margin),
        equivalence=_equivalence(pairs, clusters, margin, single=single),
        noise=noise,
        detectable=detectable,
    )


_Found = tuple[Interval, Significance, float | None, TwoNoises | None, Detectable]


def _compare_single(pairs: Pairs, level: float) -> _Found:
    """Compare with one sample per problem: the exact test of a 2x2 table."""
    table = paired_table(pairs)
    gained, lost = int(table.gained), int(table.lost)
    if gained + lost:
        interval = Interval(*tango(table, level), level, "tango")
    else:
        interval = Interval(*newcombe(table, level), level, "newcombe-10")
    test = _significance(pairs)
    alpha = 1 - level
    smallest = detectable_difference(len(pairs), (gained + lost) / len(pairs), POWER, alpha)
    detectable = Detectable(smallest, POWER, _tidy(alpha), "sign-test-exact")
    return interval, test, mid_p(gained, lost), None, detectable


def _compare_shares(pairs: Pairs, clusters: Clusters | None, level: float) -> _Found:
    """Compare with several samples per problem, or with clusters of problems."""
    shares = [(a.passed / a.n, b.passed / b.n) for a, b in pairs]
    samples = min(sum(a.n for a, _ in pairs), sum(b.n for _, b in pairs))
    interval = difference_interval(shares, samples, clusters, level)
    test = _significance(pairs)
    error = standard_error(_deltas(pairs), clusters)
    noise = two_noises(pairs, error) if math.isfinite(error) else None
    freedom = max(1, count_clusters(pairs, clusters) - 1)
    t = student_t_quantile(0.5 + level / 2, freedom)
    smallest = min(1.0, interval.half_width * (t + normal_quantile(POWER)) / t)
    return interval, test, None, noise, Detectable(smallest, POWER, _tidy(1 - level), "normal")


def paired_table(pairs: Pairs) -> PairedTable:
    """Return the 2x2 table of runs with one sample per problem."""
    outcomes = [(a.passed > 0, b.passed > 0) for a, b in pairs]
    return PairedTable(
        both=outcomes.count((True, True)),
        gained=outcomes.count((False, True)),
        lost=outcomes.count((True, False)),
        neither=outcomes.count((False, False)),
    )


def _deltas(pairs: Pairs) -> list[float]:
    return [b.passed / b.n - a.passed / a.n for a, b in pairs]


def _cluster_deltas(pairs: Pairs, clusters: Clusters | None) -> list[Fraction]:
    """Return the exact sum of the differences of every cluster."""
    sums: dict[object, Fraction] = {}
    for (a, b), cluster in zip(
        pairs, range(len(pairs)) if clusters is None else clusters, strict=True
    ):
        delta = Fraction(b.passed, b.n) - Fraction(a.passed, a.n)
        sums[cluster] = sums.get(cluster, Fraction(0)) + delta
    return list(sums.values())


def _equivalence(
    pairs: Pairs, clusters: Clusters | None, margin: float, *, single: bool
) -> Significance | None:
    """Return the p-value of two one-sided tests that the difference is within the margin."""
    if single:
        return Significance(score_equivalence_p_value(paired_table(pairs), margin), "tost-score")
    deltas = _deltas(pairs)
    error = standard_error(deltas, clusters)
    if not 0 < error < math.inf:
        return None
    t = (margin - abs(math.fsum(deltas) / len(deltas))) / error
    return Significance(student_t_cdf(-t, count_clusters(pairs, clusters) - 1), "tost-t")


def group_verdicts(table: Mapping[str, Sequence[Tally]], alpha: float = ALPHA) -> ModelGroups:
    """Return letters for models that cannot be distinguished, from their tallies by name.

    Every pair is tested over its common problems, and all pairs are corrected together. A pair
    without a common problem counts as not distinguished.
    """
    by_task = {name: {t.task_id: t for t in tallies if t.n} for name, tallies in table.items()}
    p_values = {}
    for a, b in itertools.combinations(by_task, 2):
        pairs = [(by_task[a][task], by_task[b][task]) for task in by_task[a] if task in by_task[b]]
        p_values[a, b] = _significance(pairs).p_value if pairs else 1.0
    scores = {
        name: math.fsum(t.passed / t.n for t in tallies.values()) / max(1, len(tallies))
        for name, tallies in by_task.items()
    }
    return group_models(scores, p_values, alpha)


def _significance(pairs: Pairs) -> Significance:
    """Return the test alone, for when nothing else is needed."""
    clusters = _pair_clusters(pairs)
    if clusters is None and all(a.n == b.n == 1 for a, b in pairs):
        table = paired_table(pairs)
        return Significance(sign_test(int(table.gained), int(table.lost)), "mcnemar-exact")
    return sign_flip_test(_cluster_deltas(pairs, clusters))


def _pair_clusters(pairs: Pairs) -> Clusters | None:
    """Return the cluster of every pair. Files of earlier versions lack it, so one may have it."""
    return name_clusters([b if b.cluster else a for a, b in pairs])


def compare_unpaired(
    a: Sequence[Tally], b: Sequence[Tally], margin: float = MARGIN, level: float = LEVEL
) -> Statistics:
    """Compare models that were run on different problems: Welch's test, Newcombe's interval.

    This needs far more problems than a paired comparison, because the difficulty of the problems
    does not cancel.
    """
    shares = [[t.passed / t.n for t in tallies] for tallies in (a, b)]
    (mean_a, mean_b) = (math.fsum(values) / len(values) for values in shares)
    clusters = [name_clusters(tallies) for tallies in (a, b)]
    (low_a, high_a), (low_b, high_b) = (
        mean_interval(tallies, values, level)
        for values, tallies in zip(shares, (a, b), strict=True)
    )
    difference = mean_b - mean_a
    interval = Interval(
        difference - math.hypot(mean_b - low_b, high_a - mean_a),
        difference + math.hypot(high_b - mean_b, mean_a - low_a),
        level,
        "newcombe-unpaired",
        UNPAIRED_VERSION,
    )
    smallest = interval.half_width * (1 + normal_quantile(POWER) / normal_quantile(1 - ALPHA / 2))
    return Statistics(
        problems=min(len(a), len(b)),
        clusters=min(map(count_clusters, shares, clusters)),
        design_effect=max(
            1.0 if names is None else design_effect(values, names)
            for values, names in zip(shares, clusters, strict=True)
        ),
        samples=(max(t.n for t in a), max(t.n for t in b)),
        difference=difference,
        interval=interval,
        test=Significance(welch_test(*shares, *clusters), "welch", version=UNPAIRED_VERSION),
        mid_p=None,
        margin=margin,
        decision=decide(interval, margin),
        is_within_margin=within(interval, margin),
        equivalence=None,
        noise=None,
        detectable=Detectable(min(1.0, smallest), POWER, _tidy(1 - level), "normal"),
    )


def welch_test(
    a: Sequence[float],
    b: Sequence[float],
    clusters_a: Clusters | None = None,
    clusters_b: Clusters | None = None,
) -> float:
    """Return the two-sided p-value of Welch's t test that two means are equal.

    Every cluster counts as one draw. If all values of a group are the same, in both groups, there
    is no error to divide by. It is then the exact permutation test: of all ways to choose the
    draws of A, only the one that was seen, or its mirror image, has a difference as large.
    """
    sizes = count_clusters(a, clusters_a), count_clusters(b, clusters_b)
    if min(sizes) < 2:
        return 1.0
    errors = [standard_error(a, clusters_a) ** 2, standard_error(b, clusters_b) ** 2]
    total = math.fsum(errors)
    difference = math.fsum(b) / len(b) - math.fsum(a) / len(a)
    if total <= 0:
        extreme = 2 if sizes[0] == sizes[1] else 1
        return extreme / math.comb(sum(sizes), sizes[0]) if difference else 1.0
    parts = (e * e / (size - 1) for e, size in zip(errors, sizes, strict=True))
    freedom = total * total / math.fsum(parts)
    return 2 * student_t_cdf(-abs(difference) / math.sqrt(total), freedom)


def _tidy(alpha: float) -> float:
    """Return 1 - level without the noise of binary fractions."""
    return round(alpha, 12)
