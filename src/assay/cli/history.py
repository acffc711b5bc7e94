"""``assay history``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from assay.cli._format import LEFT_OUT_NOTE, interval, percent, score, table
from assay.cli._options import as_json, option, results_dir
from assay.cli._output import echo, echo_json
from assay.runs import list_runs

if TYPE_CHECKING:
    from pathlib import Path

HEADINGS = (
    "run", "benchmark", "model", "strategy", "n", "pass@1", "95 %", "pass@10", "invalid",
    "protocol",
)  # fmt: skip


@click.command()
@results_dir
@option("--limit", type=click.IntRange(min=1), default=50, help="Most runs to list.")
@as_json
def history(results_dir: Path, limit: int, as_json: bool) -> None:
    """List the runs of a results folder, newest first.

    \b
    Example:
      assay history --results-dir results
    """
    listed = list_runs(results_dir)[:limit]
    if as_json:
        brief = [{k: v for k, v in run.items() if k != "problems"} for run in listed]
        echo_json(brief)
    elif listed:
        echo(*table([HEADINGS, *map(_row, listed)]))
        if any("left_out_as_failed" in run.get("results", {}) for run in listed):
            echo(LEFT_OUT_NOTE)
    else:
        echo(f"no runs in {results_dir}: assay eval makes the first")


def _row(run: dict[str, Any]) -> tuple[str, ...]:
    protocol, results = run["protocol"], run.get("results")
    shown = ("unfinished", "", "", "")
    if results is not None:
        shown = (
            score(results, "pass_at_1"),
            interval(results, "pass_at_1"),
            percent(results.get("pass_at_10")),
            str(results["invalid"]),
        )
    return (
        run["run"],
        run["benchmark"],
        run["model"],
        protocol["prompt_strategy"],
        str(protocol["n_samples"]),
        *shown,
        protocol["hash"][:12],
    )
