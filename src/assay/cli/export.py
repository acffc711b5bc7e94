"""``assay export``."""

from __future__ import annotations

from pathlib import Path

import click

from assay import runs
from assay.cli._groups import option
from assay.cli._options import ANY_PATH, data_dir, results_dir
from assay.cli._output import INCOMPLETE, echo
from assay.data.printable import quantity
from assay.report.export import FORMATS
from assay.report.export import export as write_run
from assay.report.text import describe_gap


@click.command()
@click.argument("run")
@option(
    "--format", "Harness whose file format to write.", "form", type=click.Choice(list(FORMATS)),
    required=True,
)  # fmt: skip
@option("--output", "Samples file or folder to write.", of="export", type=ANY_PATH, required=True)
@results_dir
@data_dir
def export(run: str, form: str, output: Path, results_dir: Path, data_dir: Path | None) -> None:
    """Export a run's samples and results in the file format of another harness.

    RUN is a results file, or the name of a run as listed by `assay history`. The exit code is 3 if
    the result is incomplete.

    \b
    Example:
      assay export humaneval_20261115_134055 --format evalplus --output samples.jsonl
    """
    result = runs.find_result(run, results_dir)
    folder = runs.find_run_folder(result, results_dir)
    exported = write_run(result, folder, form, output, data_dir=data_dir)
    for path in exported.paths:
        echo(str(path))
    if gap := describe_gap(result.coverage):
        echo(f"incomplete: {gap}. The exported results cover only these.", err=True)
    if exported.left_out:
        echo(
            f"{quantity(exported.left_out, 'sample')} could not be judged. "
            "The exported results and scores leave them out.",
            err=True,
        )
    if gap or exported.left_out:
        click.get_current_context().exit(INCOMPLETE)
