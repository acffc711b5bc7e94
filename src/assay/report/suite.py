"""Render a suite's plan and outcome as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.data.printable import quantity
from assay.report import text
from assay.scoring.power import POWER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.pipeline.suite.estimate import PlannedRow, SuitePlan
    from assay.pipeline.suite.run import SuiteOutcome, SuiteResult

COLUMNS = ("model", "benchmark", "strategy", "decoding")
NOT_OURS = "published, not measured by assay"


def summarize_suite(done: SuiteResult) -> list[str]:
    """Return one line per evaluation, then failures, targets and published scores."""
    header = (*COLUMNS, "pass@1", "95 %", "reused", "run", "marks")
    lines = text.table([header, *map(_row, done.outcomes)])
    lines += text.explain_marks(name for result in done.results for name in result.marks)
    lines += [f"failed: {row.model} on {row.benchmark}: {row.error}" for row in done.failures]
    lines += _targets(done)
    for one in done.record.baselines:
        source = f", {one.source}" if one.source else ""
        lines.append(
            f"{one.benchmark} {one.figure} {text.percent(one.score)}  {one.model} "
            f"({NOT_OURS}{source})"
        )
    return [*lines, f"suite   {done.path}"] if done.path else lines


def _row(outcome: SuiteOutcome) -> tuple[str, ...]:
    row, result = outcome.row, outcome.result
    names = (row.model, row.benchmark, row.strategy, row.decoding)
    if result is None:
        return *names, row.state, "", "", "", ""
    one = result.pass_at.get(1)
    return (
        *names,
        text.score(result.results, 1) + ("" if result.complete else " incomplete"),
        text.interval(one),
        str(result.timing.reused),
        row.run,
        text.label_marks(result.marks),
    )


def _targets(done: SuiteResult) -> list[str]:
    """Return which models reach each target."""
    lines = []
    for target in done.record.targets:
        k = int(target.figure.partition("@")[2])
        reached: list[str] = []
        missed: list[str] = []
        for result in done.results:
            if result.benchmark == target.benchmark and (estimate := result.pass_at.get(k)):
                shown = f"{result.model} ({text.percent_of(estimate)})"
                (reached if estimate.value >= target.score else missed).append(shown)
        lines.append(
            f"target  {target.benchmark} {target.figure} {text.percent(target.score)}: "
            f"reached by {', '.join(reached) or 'none'}"
            + (f"; missed by {', '.join(missed)}" if missed else "")
        )
    return lines


def summarize_plan(plan: SuitePlan) -> list[str]:
    """Return one line per evaluation, and the sum."""
    header = (*COLUMNS, "requests", "done", "tokens in", "tokens out", "time", "shows", "from")
    lines = text.table([header, *map(_planned, plan.rows)])
    time = "unknown time" if plan.seconds is None else f"about {text.duration(plan.seconds)}"
    return [
        *lines,
        f"{quantity(len(plan.rows), 'evaluation')}, {plan.requests:,} requests to generate, {time}",
        f"shows: the smallest difference from a similar model that is found with {100 * POWER:g} % "
        "probability",
    ]


def _planned(row: PlannedRow) -> Sequence[str]:
    bound = "" if row.source or not row.new_tokens else "at most "
    return (
        row.model, row.benchmark, row.strategy, row.decoding,
        f"{row.requests:,}",
        f"{row.done:,}",
        "-" if row.prompt_tokens is None else f"{row.prompt_tokens:,}",
        f"{bound}{row.new_tokens:,}",
        "-" if row.seconds is None else text.duration(row.seconds),
        "-" if row.detectable is None else f"{100 * row.detectable:.1f} points",
        row.source,
    )  # fmt: skip
