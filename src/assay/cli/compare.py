"""``assay compare``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import click

from assay import runs
from assay.cli._groups import switch
from assay.cli._options import as_json, margin, plot_option, results_dir, save_plot
from assay.cli._output import echo, echo_result
from assay.errors import UsageError
from assay.report import figures
from assay.report.comparison import summarize_comparison, summarize_family
from assay.report.summary import describe_differences, describe_incomplete
from assay.runs import Comparison, Result


@click.command()
@click.argument("a")
@click.argument("b")
@click.argument("more", nargs=-1)
@margin
@switch(
    "--unpaired",
    "Compare runs of different problems. This needs many more problems than a paired comparison.",
)
@results_dir
@switch("--force", "Compare even if the protocols differ, with a warning.", of="compare")
@plot_option("the differences and their intervals")
@as_json
def compare(
    a: str, b: str, more: tuple[str, ...], margin: float, unpaired: bool, results_dir: Path,
    force: bool, plot_path: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Compare result B with result A: better, worse, equivalent or undecided.

    Prints the difference with its interval and test, the problems that changed, and the smallest
    difference that these runs could show. With MORE results, A is the baseline of all others, and
    p-values are corrected for their number. All are results files, or names of runs as listed by
    `assay history`.

    \b
    Examples:
      assay compare results/original.json results/quantised.json --margin 2
      assay compare BASELINE RUN_1 RUN_2 RUN_3 --plot differences.svg
    """
    results = [runs.find_result(name, results_dir) for name in (a, b, *more)]
    if more:
        if unpaired:
            raise UsageError("--unpaired: compares two runs. Give only A and B, or drop it.")
        _compare_several(results, margin / 100, force=force, plot_path=plot_path, as_json=as_json)
        return
    first, second = results
    comparison = runs.compare(first, second, margin=margin / 100, unpaired=unpaired)
    _check(comparison, first, second, force=force)
    save_plot(plot_path, lambda: figures.draw_comparison(comparison, first, second))
    lines = functools.partial(summarize_comparison, comparison, first, second)
    echo_result(comparison, lines, as_json=as_json)


def _compare_several(
    results: Sequence[Result], margin: float, *, force: bool, plot_path: Path | None, as_json: bool
) -> None:
    family = runs.compare_family(results[0], results[1:], margin=margin)
    for member, result in zip(family.members, results[1:], strict=True):
        _check(member.comparison, results[0], result, force=force, name=result.run)
    save_plot(plot_path, lambda: figures.draw_family(family, results))
    echo_result(family, lambda: summarize_family(family, results), as_json=as_json)


def _check(
    comparison: Comparison, first: Result, second: Result, *, force: bool, name: str = ""
) -> None:
    """Raise UsageError for different protocols, or warn of them and of missing samples."""
    differing = describe_differences(comparison.protocol_differences)
    if differing and not force:
        raise UsageError(
            f"{name or 'A and B'}: their protocols differ ({differing}). "
            "Use --force to compare anyway."
        )
    if differing:
        echo(f"warning: {name or 'A and B'}: the protocols differ ({differing})", err=True)
    for warning in describe_incomplete(comparison, first, second):
        echo(f"warning: {name and f'{name}: '}{warning}", err=True)
