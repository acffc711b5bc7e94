"""``assay plan``."""

from __future__ import annotations

from pathlib import Path

import click

from assay import api
from assay.cli._options import as_json, data_dir, option, results_dir
from assay.cli._output import echo, echo_json, note
from assay.progress import Silent
from assay.quality.plan import Cost, Plan
from assay.report.text import table
from assay.runs import find_result


class _Notes(Silent):
    """Print notes on stderr and nothing else."""

    def note(self, text: str) -> None:
        note(text)


@click.command()
@option("--benchmark", required=True, envvar="ASSAY_PLAN_BENCHMARK", help="Benchmark to plan for.")
@option(
    "--difference",
    type=float,
    default=3.0,
    help="Difference of pass@1 that the comparison should be able to show, in points.",
)
@option(
    "--power",
    type=float,
    default=0.8,
    help="Probability of showing that difference if it exists.",
)
@option(
    "--pilot",
    "pilots",
    multiple=True,
    metavar="RUN",
    help="Earlier run that provides cost and noise. Give the option twice, once per model, to "
    "measure how the two differ.",
)
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
    found = api.plan(
        benchmark,
        difference=difference / 100,
        power=power,
        pilots=[find_result(name, results_dir) for name in pilots],
        data_dir=data_dir,
        reporter=_Notes(),
    )
    if as_json:
        echo_json(found)
    else:
        echo(*_lines(found))


def _lines(found: Plan) -> list[str]:
    """Return the lines for a plan."""
    return [
        f"{found.benchmark}: {found.problems} problems; to show {_points(found.difference)} with "
        f"{100 * found.power:g} % power at the {100 * found.alpha:g} % level",
        "one sample per problem of each model (exact sign test)",
        *_indent(_single(found)),
        f"several samples per problem ({found.noises.source})",
        *_indent(_several(found)),
        *_needed(found),
        *(_cost(found.cost) if found.cost else []),
    ]


def _single(found: Plan) -> list[str]:
    rows = [("flips", "power here", "smallest difference here", "problems needed")]
    for one in found.single:
        rows.append(
            (
                f"{100 * one.discordance:.3g} %",
                f"{100 * one.power:.0f} %",
                "-" if one.detectable is None else _points(one.detectable),
                "-" if one.problems_needed is None else f"{one.problems_needed:,}",
            )
        )
    return table(rows)


def _several(found: Plan) -> list[str]:
    rows = [("samples", "standard error", "smallest difference here")]
    for one in found.several:
        error = f"{100 * one.standard_error:.2f} points"
        rows.append((str(one.samples), error, _points(one.detectable)))
    return table(rows)


def _needed(found: Plan) -> list[str]:
    if found.samples_needed is not None:
        total = found.samples_needed * found.problems
        return [
            f"needed  {found.samples_needed} samples per problem of each model, {total:,} samples"
        ]
    return [
        f"needed  {found.problems_needed:,} problems or more: no number of samples is enough with "
        f"{found.problems}"
    ]


def _cost(found: Cost) -> list[str]:
    parts = [f"{found.samples:,} samples", f"{found.tokens:,} generated tokens"]
    if found.minutes is not None:
        parts.append(f"about {found.minutes:g} minutes")
    if found.price is not None:
        parts.append(f"price {found.price:.4f}")
    return [f"cost    {', '.join(parts)} per model, as in the pilot"]


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"


def _indent(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
