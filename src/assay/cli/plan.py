"""``assay plan``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from assay import api
from assay.cli._groups import option
from assay.cli._options import as_json, data_dir, results_dir
from assay.cli._output import Notes, echo_result
from assay.quality.comparison_plan import Cost, Plan
from assay.report.text import table
from assay.runs import find_result


@click.command()
@option("--benchmark", "Benchmark to plan for.", required=True, of="plan")
@option(
    "--difference",
    "Difference of pass@1 that the comparison should be able to show, in points.",
    default=3.0,
)
@option("--power", "Probability of showing that difference if it exists.", default=0.8)
@option(
    "--pilot",
    "Earlier run that provides cost and noise. Give the option twice, once per model, to "
    "measure how the two differ.",
    "pilots", multiple=True, metavar="RUN",
)  # fmt: skip
@data_dir
@results_dir
@as_json
def plan(
    benchmark: str, difference: float, power: float, pilots: tuple[str, ...],
    data_dir: Path | None, results_dir: Path, as_json: bool,
) -> None:  # fmt: skip
    """Plan a comparison: how many problems and samples show a difference, and their cost.

    \b
    Examples:
      assay plan --benchmark humaneval --difference 3
      assay plan --benchmark mbpp --difference 2 --power 0.9 --pilot RUN_A --pilot RUN_B
    """
    result = api.plan(
        benchmark,
        difference=difference / 100,
        power=power,
        pilots=[find_result(name, results_dir) for name in pilots],
        data_dir=data_dir,
        reporter=Notes(),
    )
    echo_result(result, lambda: _lines(result), as_json=as_json)


def _lines(plan: Plan) -> list[str]:
    """Return the lines for a plan."""
    total = (plan.samples_needed or 0) * plan.problems
    needed = f"{plan.samples_needed} samples per problem of each model, {total:,} samples"
    if plan.samples_needed is None:
        needed = (
            f"{plan.problems_needed:,} problems or more: no number of samples is enough with "
            f"{plan.problems}"
        )
    return [
        f"{plan.benchmark}: {plan.problems} problems; to show {_points(plan.difference)} with "
        f"{100 * plan.power:g} % power at the {100 * plan.alpha:g} % level",
        "one sample per problem of each model (exact sign test)",
        *(f"  {line}" for line in table(list(_single(plan)))),
        f"several samples per problem ({plan.noises.source})",
        *(f"  {line}" for line in table(list(_several(plan)))),
        f"needed  {needed}",
        *([_cost(plan.cost)] if plan.cost else []),
    ]


def _single(plan: Plan) -> Iterator[tuple[str, ...]]:
    yield "flips", "power here", "smallest difference here", "problems needed"
    for one in plan.single:
        yield (
            f"{100 * one.discordance:.3g} %",
            f"{100 * one.power:.0f} %",
            "-" if one.detectable is None else _points(one.detectable),
            "-" if one.problems_needed is None else f"{one.problems_needed:,}",
        )


def _several(plan: Plan) -> Iterator[tuple[str, ...]]:
    yield "samples", "standard error", "smallest difference here"
    for one in plan.several:
        error = f"{100 * one.standard_error:.2f} points"
        yield str(one.samples), error, _points(one.detectable)


def _cost(cost: Cost) -> str:
    parts = [f"{cost.samples:,} samples", f"{cost.tokens:,} generated tokens"]
    if cost.minutes is not None:
        parts.append(f"about {cost.minutes:g} minutes")
    if cost.price is not None:
        parts.append(f"price {cost.price:.4f}")
    return f"cost    {', '.join(parts)} per model, as in the pilot"


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"
