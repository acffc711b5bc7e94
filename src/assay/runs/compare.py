"""Compare two results."""

from __future__ import annotations

from dataclasses import dataclass

from assay.errors import UsageError
from assay.protocol import Difference, differences
from assay.runs.result import Result
from assay.runs.result_json import render_result
from assay.scoring import sign_test


@dataclass(frozen=True, slots=True)
class Comparison:
    """B compared with A. ``gained`` and ``lost`` are problems whose share of passes changed."""

    model_a: str
    model_b: str
    pass_at_1_a: float | None
    pass_at_1_b: float | None
    problems: int  # judged in both
    difference: float | None  # of the means over these problems
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    p_value: float
    protocol_differences: tuple[Difference, ...]


def compare(a: Result, b: Result) -> Comparison:
    """Compare two results over the problems that were judged in both.

    The caller decides whether different protocols matter. Raise UsageError for different judges,
    because a difference could then come from the judges instead of the models.
    """
    judges = [result.protocol.judge or "assay" for result in (a, b)]
    if judges[0] != judges[1]:
        raise UsageError(
            f"A and B: were judged by {judges[0]} and {judges[1]}, so they cannot be compared. "
            "Use `assay score --cross-check` to see where two judges disagree."
        )
    before, after = _shares(a), _shares(b)
    common = [task for task in before if task in after]
    gained = tuple(task for task in common if after[task] > before[task])
    lost = tuple(task for task in common if after[task] < before[task])
    change = sum(after[task] - before[task] for task in common)
    return Comparison(
        model_a=a.model,
        model_b=b.model,
        pass_at_1_a=_pass_at_1(a),
        pass_at_1_b=_pass_at_1(b),
        problems=len(common),
        difference=change / len(common) if common else None,
        gained=gained,
        lost=lost,
        p_value=sign_test(len(gained), len(lost)),
        protocol_differences=tuple(
            differences(render_result(a)["protocol"], render_result(b)["protocol"])
        ),
    )


def _pass_at_1(result: Result) -> float | None:
    return result.pass_at[1].value if 1 in result.pass_at else None


def _shares(result: Result) -> dict[str, float]:
    return {p.task_id: p.passed / p.n for p in result.problems if p.n}
