"""Compare results: two of them, or several with a baseline."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.errors import UsageError
from assay.protocol import Difference, differences
from assay.runs.marks import MarkName
from assay.runs.result import Result
from assay.runs.results import render_result
from assay.scoring import Tally
from assay.scoring.comparison import (
    Statistics,
    compare_pairs,
    compare_unpaired,
    group_verdicts,
)
from assay.scoring.decisions import (
    ALPHA,
    MARGIN,
    Decision,
    ModelGroups,
    decide_in_family,
    holm,
)
from assay.scoring.intervals import LEVEL, VERSION
from assay.scoring.problems import (
    ProblemDifficulty,
    SuspiciousProblem,
    difficulties,
    suspicious_problems,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Statistics):
    """B compared with A. ``gained`` and ``lost`` are problems whose share of passes changed.

    Without pairs, the two runs have different problems, and these are empty.
    """

    model_a: str
    model_b: str
    run_a: str
    run_b: str
    pass_at_1_a: float | None
    pass_at_1_b: float | None
    marks_a: tuple[MarkName, ...]
    marks_b: tuple[MarkName, ...]
    is_paired: bool
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    p_value: float  # of the test
    protocol_differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class FamilyMember:
    """One of several comparisons with the same baseline.

    The comparison's interval has a level at which all of them cover together. The decision uses
    Holm's p-value for a difference, and this interval for equivalence.
    """

    comparison: Comparison
    adjusted_p_value: float
    decision: Decision


@dataclass(frozen=True, slots=True)
class ComparisonFamily:
    """Several results compared with a baseline, with one chance of error for all of them."""

    baseline: str  # its run
    members: tuple[FamilyMember, ...]
    groups: ModelGroups  # by run, over all pairs with the baseline
    difficulties: tuple[ProblemDifficulty, ...]
    suspicious_problems: tuple[SuspiciousProblem, ...]
    alpha: float = ALPHA
    method: str = "holm"
    version: int = VERSION


def compare(
    a: Result,
    b: Result,
    *,
    margin: float = MARGIN,
    level: float = LEVEL,
    unpaired: bool = False,
) -> Comparison:
    """Compare two results over the problems that were judged in both.

    ``unpaired`` compares all problems of each, for runs of different problems. The caller decides
    whether different protocols matter. Raise UsageError for different judges, because a difference
    could then come from the judges instead of the models.
    """
    check_margin(margin)
    _check_judges(a, b)
    before, after = tally_problems(a), tally_problems(b)
    common = [task for task in before if task in after]
    if unpaired:
        statistics = _compare_unpaired(a, b, before, after, margin, level)
        common = []
    else:
        statistics = compare_pairs(_pairs(a, b, before, after), margin, level)
    pairs = {task: (before[task], after[task]) for task in common}
    shares = {task: (old.passed / old.n, new.passed / new.n) for task, (old, new) in pairs.items()}
    return Comparison(
        **{f.name: getattr(statistics, f.name) for f in dataclasses.fields(statistics)},
        model_a=a.model,
        model_b=b.model,
        run_a=a.run,
        run_b=b.run,
        pass_at_1_a=_pass_at_1(a),
        pass_at_1_b=_pass_at_1(b),
        marks_a=a.marks,
        marks_b=b.marks,
        is_paired=not unpaired,
        gained=tuple(task for task, (old, new) in shares.items() if new > old),
        lost=tuple(task for task, (old, new) in shares.items() if new < old),
        p_value=statistics.test.p_value,
        protocol_differences=tuple(
            differences(render_result(a)["protocol"], render_result(b)["protocol"])
        ),
    )


def compare_family(
    baseline: Result, others: Sequence[Result], *, margin: float = MARGIN, alpha: float = ALPHA
) -> ComparisonFamily:
    """Compare several results with a baseline, problem by problem.

    A false claim among all of them has a probability of at most ``alpha``: p-values are corrected
    by Holm's method, and intervals have the level 1 - alpha / number of comparisons.
    """
    level = 1 - alpha / len(others)
    comparisons = [compare(baseline, other, margin=margin, level=level) for other in others]
    adjusted = holm([one.p_value for one in comparisons])
    members = tuple(
        FamilyMember(one, p, decide_in_family(one.interval, one.difference, p, margin, alpha))
        for one, p in zip(comparisons, adjusted, strict=True)
    )
    table = {result.run: list(tally_problems(result).values()) for result in (baseline, *others)}
    return ComparisonFamily(
        baseline.run,
        members,
        group_verdicts(table, alpha),
        tuple(difficulties(table)),
        tuple(suspicious_problems(table)),
        alpha,
    )


def share_problems(a: Result, b: Result) -> bool:
    """Return whether two results have a judged problem in common."""
    pairs = zip(a.problems, b.problems, strict=False)
    if any(p.n and q.n and p.task_id == q.task_id for p, q in pairs):  # mostly the first ones
        return True
    judged = {problem.task_id for problem in a.problems if problem.n}
    return any(problem.n and problem.task_id in judged for problem in b.problems)


def tally_problems(result: Result) -> dict[str, Tally]:
    """Return the judged samples of every problem that has some."""
    return {problem.task_id: problem.tally for problem in result.problems if problem.n}


def _pairs(
    a: Result, b: Result, before: Mapping[str, Tally], after: Mapping[str, Tally]
) -> list[tuple[Tally, Tally]]:
    common = [task for task in before if task in after]
    if not common:
        raise UsageError(
            f"{b.run}: has no judged problem in common with {a.run}. Compare runs of the same "
            "problems, or use --unpaired."
        )
    # Earlier versions did not write the cluster, so one of the two may lack it.
    clusters = {task: after[task].cluster or before[task].cluster for task in common}
    return [
        (before[task], dataclasses.replace(after[task], cluster=clusters[task])) for task in common
    ]


def _compare_unpaired(
    a: Result,
    b: Result,
    before: Mapping[str, Tally],
    after: Mapping[str, Tally],
    margin: float,
    level: float,
) -> Statistics:
    for result, tallies in ((a, before), (b, after)):
        if not tallies:
            raise UsageError(f"{result.run}: has no judged problem. Choose another run.")
    return compare_unpaired(list(before.values()), list(after.values()), margin, level)


def check_margin(margin: float) -> None:
    """Raise UsageError for a margin that is not a share, such as points. Nothing is within 0."""
    if not 0 <= margin <= 1:
        raise UsageError(
            f"margin {margin:g}: is not a share between 0 and 1. Give 0.02 for two points."
        )


def _check_judges(a: Result, b: Result) -> None:
    judges = [result.protocol.judge or "assay" for result in (a, b)]
    if judges[0] != judges[1]:
        raise UsageError(
            f"A and B: were judged by {judges[0]} and {judges[1]}, so they cannot be compared. "
            "Use `assay score --cross-check` to see where two judges disagree."
        )


def _pass_at_1(result: Result) -> float | None:
    return result.pass_at[1].value if 1 in result.pass_at else None
