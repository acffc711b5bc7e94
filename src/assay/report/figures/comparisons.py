"""Plot comparisons with a baseline."""

from __future__ import annotations

from collections.abc import Sequence

from assay.report.plots import Difference, Drawing, Forest, draw_forest
from assay.report.plots.axes import WIDTH
from assay.report.text import benchmark_name
from assay.runs import Comparison, ComparisonFamily, Result


def draw_comparison(
    found: Comparison, first: Result, second: Result, width: float = WIDTH
) -> Drawing:
    """Return the difference of two results, for all problems together."""
    return draw_forest(
        Forest(
            first.model,
            (_difference(second.model, found, found.decision),),
            margin=found.margin,
            level=found.interval.level,
            title=f"{second.model} compared with {first.model} on {benchmark_name(second)}",
        ),
        width,
    )


def draw_family(
    found: ComparisonFamily, results: Sequence[Result], width: float = WIDTH
) -> Drawing:
    """Return the differences of several results to a baseline, which is the first of them."""
    names = _name_results(results[1:])
    rows = [
        _difference(name, member.comparison, member.decision)
        for name, member in zip(names, found.members, strict=True)
    ]
    one = found.members[0].comparison
    return draw_forest(
        Forest(results[0].model, tuple(rows), margin=one.margin, level=one.interval.level), width
    )


def _difference(name: str, found: Comparison, decision: str) -> Difference:
    return Difference(name, found.difference, found.interval.low, found.interval.high, decision)


def _name_results(results: Sequence[Result]) -> list[str]:
    """Return the names of models, with the run where two have the same name."""
    models = [result.model for result in results]
    return [
        result.model if models.count(result.model) == 1 else f"{result.model} ({result.run})"
        for result in results
    ]
