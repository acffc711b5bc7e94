"""``assay report``."""

from __future__ import annotations

from pathlib import Path

import click

from assay import api
from assay.cli._groups import option
from assay.cli._options import FILE, data_dir, results_dir
from assay.cli._output import LeftOut, echo
from assay.cli._progress import ProgressDisplay


@click.command()
@click.argument("references", metavar="[RUN|SUITE|FOLDER]...", nargs=-1)
@option(
    "--output", "HTML file to write. Default: report.html.", of="report", type=FILE,
    default=Path("report.html"),
)  # fmt: skip
@option("--title", "Title of the report. Default: the names of its benchmarks.", default="")
@results_dir
@data_dir
def report(
    references: tuple[str, ...], output: Path, title: str, results_dir: Path, data_dir: Path | None
) -> None:
    """Write one HTML file with runs, their samples, comparisons and a leaderboard.

    The file needs no network, and can be mailed or published. Arguments are names, folders or
    results files of runs, names of suites, results folders, and files that `assay perplexity`,
    `bench`, `compare-hf`, `check` or `qa` wrote. Without arguments, the report has everything in
    the results folder.

    \b
    Examples:
      assay report
      assay report humaneval_20261116_170138 --output mine.html
      assay report results/original results/quantised --title "Q4 against F16"
    """
    left_out = LeftOut()
    with ProgressDisplay("report", quiet=False) as display:
        written = api.write_report(
            references, output, results_dir=results_dir, title=title, data_dir=data_dir,
            reporter=display, warn=left_out.warn,
        )  # fmt: skip
    echo(f"{written}  {written.stat().st_size / 1e6:.1f} MB")
    left_out.exit_if_any()
