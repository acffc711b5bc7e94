"""``assay compare``."""

from __future__ import annotations

from pathlib import Path

import click

from assay import runs
from assay.cli._options import as_json, option, results_dir
from assay.cli._output import echo, echo_json
from assay.errors import UsageError
from assay.report.summary import (
    describe_differences,
    describe_incomplete,
    summarize_comparison,
)


@click.command()
@click.argument("a")
@click.argument("b")
@results_dir
@option(
    "--force", is_flag=True, envvar="ASSAY_COMPARE_FORCE",
    help="Compare even if the protocols differ, with a warning.",
)  # fmt: skip
@as_json
def compare(a: str, b: str, results_dir: Path, force: bool, as_json: bool) -> None:
    """Compare result B with result A: scores, their difference, and problems that changed.

    A and B are results files, or names of runs as listed by `assay history`.

    \b
    Example:
      assay compare results/before.json results/after.json
    """
    first, second = runs.find_result(a, results_dir), runs.find_result(b, results_dir)
    found = runs.compare(first, second)
    differing = describe_differences(found.protocol_differences)
    if differing and not force:
        raise UsageError(
            f"A and B: their protocols differ ({differing}). Use --force to compare anyway."
        )
    if differing:
        echo(f"warning: the protocols differ ({differing})", err=True)
    for warning in describe_incomplete(found, first, second):
        echo(f"warning: {warning}", err=True)
    if as_json:
        echo_json(found)
    else:
        echo(*summarize_comparison(found, first, second))
