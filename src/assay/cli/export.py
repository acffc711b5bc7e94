"""``assay export``."""

from __future__ import annotations

from pathlib import Path

import click

from assay import runs
from assay.cli._format import INCOMPLETE, describe_gap
from assay.cli._options import data_dir, option, results_dir
from assay.cli._output import echo
from assay.cli._progress import ProgressDisplay
from assay.errors import UsageError
from assay.report.export import FORMATS
from assay.report.export import export as write_run


@click.command()
@click.argument("run")
@option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    required=True,
    help="Whose files to write.",
)
@option(
    "--output", type=click.Path(path_type=Path), required=True, envvar="ASSAY_EXPORT_OUTPUT",
    help="File of samples, or folder.",
)  # fmt: skip
@results_dir
@data_dir
def export(run: str, form: str, output: Path, results_dir: Path, data_dir: Path | None) -> None:
    """Write a run's samples and results as another harness does.

    RUN is a results file, or the name of a run that `assay history` lists. The exit code is 3 if
    that result is incomplete.

    \b
    Example:
      assay export humaneval_20261115_134055 --format evalplus --output samples.jsonl
    """
    result = runs.find_result(run, results_dir)
    folder = results_dir / str(result.get("run", ""))
    if not result.get("run") or not folder.is_dir():
        raise UsageError(f"the folder of run {run} is not in {results_dir}: it has the programs")
    with ProgressDisplay(run, quiet=True) as display:
        made = write_run(result, folder, form, output, display, data_dir)
    for path in made.paths:
        echo(str(path))
    if gap := describe_gap(result):
        echo(f"incomplete: {gap}; the exported results are about these alone", err=True)
    if made.left_out:
        echo(
            f"{made.left_out} samples could not be judged: they are in no results nor scores",
            err=True,
        )
    if gap or made.left_out:
        click.get_current_context().exit(INCOMPLETE)
