"""``assay compare``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from assay import runs
from assay.cli._options import as_json, margin, option, results_dir
from assay.cli._output import echo, echo_json
from assay.cli._plots import plot_option, save_plot
from assay.errors import UsageError
from assay.protocol import Difference
from assay.report import figures
from assay.report.comparison import summarize_comparison, summarize_family
from assay.report.summary import describe_differences, describe_incomplete
from assay.runs import Result


@click.command()
@click.argument("a")
@click.argument("b")
@click.argument("more", nargs=-1)
@margin
@option(
    "--unpaired", is_flag=True,
    help="Compare runs of different problems. This needs many more problems than a paired "
    "comparison.",
)  # fmt: skip
@results_dir
@option(
    "--force", is_flag=True, envvar="ASSAY_COMPARE_FORCE",
    help="Compare even if the protocols differ, with a warning.",
)  # fmt: skip
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
    found = runs.compare(first, second, margin=margin / 100, unpaired=unpaired)
    _check_protocols(found.protocol_differences, force=force)
    for warning in describe_incomplete(found, first, second):
        echo(f"warning: {warning}", err=True)
    save_plot(plot_path, lambda: figures.draw_comparison(found, first, second))
    if as_json:
        echo_json(found)
    else:
        echo(*summarize_comparison(found, first, second))


def _compare_several(
    results: Sequence[Result], margin: float, *, force: bool, plot_path: Path | None, as_json: bool
) -> None:
    found = runs.compare_family(results[0], results[1:], margin=margin)
    for member, result in zip(found.members, results[1:], strict=True):
        differing = member.comparison.protocol_differences
        _check_protocols(differing, force=force, name=result.run)
        for warning in describe_incomplete(member.comparison, results[0], result):
            echo(f"warning: {result.run}: {warning}", err=True)
    save_plot(plot_path, lambda: figures.draw_family(found, results))
    if as_json:
        echo_json(found)
    else:
        echo(*summarize_family(found, results))


def _check_protocols(found: Sequence[Difference], *, force: bool, name: str = "") -> None:
    """Raise UsageError for different protocols, or warn of them."""
    differing = describe_differences(found)
    if differing and not force:
        raise UsageError(
            f"{name or 'A and B'}: their protocols differ ({differing}). "
            "Use --force to compare anyway."
        )
    if differing:
        echo(f"warning: {name or 'A and B'}: the protocols differ ({differing})", err=True)
