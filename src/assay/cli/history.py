"""``assay history``."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import click

from assay.cli._groups import option, switch
from assay.cli._options import as_json, plot_option, results_dir, save_plot
from assay.cli._output import LeftOut, echo, echo_json, echo_text
from assay.report import figures
from assay.report.history import history_csv, history_table
from assay.runs import RunFilter, list_runs
from assay.runs.history import check_runs

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@results_dir
@option("--model", "List only models whose name contains this text.", of="history", default="")
@option("--benchmark", "List only runs of this benchmark.", of="history", default="")
@option(
    "--since",
    "List only runs since a date, such as 2026-11-01, or since N days ago, such as 7d.",
    default="",
    metavar="DATE|Nd",
)
@option("--limit", "Maximum number of runs.", metavar="N", type=click.IntRange(min=1), default=50)
@switch("--csv", "Print comma-separated values with all columns.", "as_csv")
@plot_option("the scores of one benchmark over time")
@as_json
def history(
    results_dir: Path, limit: int, as_csv: bool, plot_path: Path | None, as_json: bool,
    **wanted: str,
) -> None:  # fmt: skip
    """List the runs of a results folder, newest first.

    Settings are shown only if the runs differ in them.

    \b
    Examples:
      assay history --results-dir results
      assay history --model qwen --benchmark humaneval --since 7d
    """
    admits = RunFilter(**wanted).admits
    left_out = LeftOut()
    every = list_runs(results_dir, left_out.warn)
    runs = check_runs(itertools.islice(filter(admits, every), limit), left_out.warn)
    save_plot(plot_path, lambda: figures.draw_runs(runs))
    if as_json:
        echo_json([run.to_json() for run in runs])
    elif as_csv:
        echo_text(history_csv(runs).rstrip("\n"))
    elif runs:
        echo(*history_table(runs))
    elif every:
        echo(f"None of the {len(every)} runs in {results_dir} match the filters. Drop a filter.")
    else:
        echo(f"No runs in {results_dir}. Start one with `assay eval`.")
    left_out.exit_if_any()
