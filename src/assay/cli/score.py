"""``assay score``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from assay.cli._options import judging, option
from assay.cli._progress import ProgressDisplay
from assay.cli.eval import show
from assay.pipeline import ScoreConfig, flaky
from assay.pipeline import score as run_score


@click.command()
@click.argument("samples_file", metavar="SAMPLES.jsonl")
@option("--benchmark", required=True, help="The benchmark the samples are for.")
@option("--check-flaky", type=click.IntRange(min=0), default=0, help="Execute N times more.")
@judging
def score(
    samples_file: str,
    results_dir: Path,
    check_flaky: int,
    resume: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Judge completions made elsewhere.

    Lines {"task_id", "completion"} (continuations of the prompt), {"task_id", "solution"} (whole
    programs or chat text), or those of a run's own completions.jsonl.

    \b
    Example:
      assay score samples.jsonl --benchmark humaneval
    """
    config = ScoreConfig(
        samples_file=samples_file, results_dir=results_dir, fresh=not resume, **asked
    )
    with ProgressDisplay(config.benchmark, quiet=as_json) as display:
        evaluation = run_score(config, display)
        changed = flaky(config, evaluation, check_flaky, display)
    if check_flaky:
        evaluation.result["flaky"] = changed
    show(evaluation, as_json=as_json)
    if check_flaky and not as_json:
        click.echo(f"  flaky     {len(changed)} samples changed in {check_flaky} more executions")
        for sample, statuses in changed.items():
            click.echo(f"            {sample}: {', '.join(statuses)}")
