"""Render the scores of a run beside its headline: other estimates, and scores by label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from assay.report.pages.figures import interval_cell
from assay.report.pages.markup import count, panel, percent, range_of, table, text, tiles
from assay.runs import Result
from assay.runs.result import BreakdownResult, Dependence

FEWEST_ROWS = 2  # of a table that compares


def render_tiles(result: Result) -> str:
    """Return every estimate except pass@1 as a name, a figure and an interval."""
    return tiles(
        (name, f"{percent(value)} %", "" if low is None or high is None else range_of(low, high))
        for name, value, low, high in list_estimates(result)
    )


def list_estimates(result: Result) -> Iterator[tuple[str, float, float | None, float | None]]:
    """Yield the name, value and ends of all estimates of a run except pass@1."""
    scores = result.results
    for k, one in scores.pass_at.items():
        if k != 1:
            yield f"pass@{k}", one.value, one.low, one.high
    for name, group in list(scores.groups.items())[:-1]:
        if found := group.pass_at.get(1):
            yield f"pass@1, {name} tests alone", found.value, found.low, found.high
    if best := scores.best_of_n:
        one = best.estimate
        yield f"best of {best.n} by {best.method}", one.value, one.low, one.high
    if matches := scores.infilling:
        for name, one in (
            ("exact match", matches.exact_match),
            ("edit similarity", matches.edit_similarity),
        ):
            yield name, one.value, one.low, one.high
    for name, measure in scores.measures.items():
        yield name, measure.value, measure.low, measure.high


def render_tables(result: Result) -> str:
    """Return a panel for every label of the problems, and one for the extraction rules."""
    found = [_breakdown(name, values) for name, values in result.results.breakdowns.items()]
    if result.extraction:
        found.append(_extraction(result.extraction))
    return "".join(found)


def _breakdown(label: str, values: Mapping[str, BreakdownResult]) -> str:
    rows = [
        (text(value), f"<strong>{percent(one.value)}</strong>", interval_cell(one),
         f"{found.problems:,}")
        for value, found in values.items()
        if (one := found.pass_at.get(1))
    ]  # fmt: skip
    if len(rows) < FEWEST_ROWS:
        return ""
    title = f"pass@1 by {label}"
    headings = (label, "pass@1", "95 % interval", "Problems")
    return panel(title, table(f"{title}, table", headings, rows))


def _extraction(rules: tuple[Dependence, ...]) -> str:
    rows = [
        (text(one.rule), f"{one.samples:,}", f"{one.lost:,}", f"{one.gained:,}") for one in rules
    ]
    headings = ("Rule", "Samples that change", "Passes lost", "Passes gained")
    title = "Without one extraction rule"
    return panel(title, table(f"{title}, table", headings, rows))


def list_checks(result: Result) -> Iterator[tuple[str, str, str]]:
    """Yield the kind, name and finding of another judge, and of a sequential comparison."""
    if check := result.cross_check:
        unexplained = sum(not one.explained for one in check.disagreements)
        what = f"{len(check.disagreements):,} of {count(check.samples, 'verdict')} differ"
        kind = "bad" if unexplained else "soft"
        yield kind, check.engine, f"{what}, {unexplained:,} of them unexplained."
    if (found := result.sequential) and found.looks:
        last = found.looks[-1]
        points = f"{100 * (last.gained - last.lost) / last.pairs:+.1f} points"
        rounds = f"after {last.rounds:,} of {count(found.budget, 'round')}"
        yield "soft", found.decision, f"{points} compared with {found.baseline_model}, {rounds}."
