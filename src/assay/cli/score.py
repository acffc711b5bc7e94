"""``assay score``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from assay import codec
from assay.cli._options import judging, option
from assay.cli._progress import ProgressDisplay
from assay.cli.eval import show
from assay.pipeline import ScoreConfig, flaky
from assay.pipeline import score as run_score
from assay.pipeline.extraction import dependences


@click.command()
@click.argument("samples_file", metavar="SAMPLES.jsonl")
@option("--benchmark", required=True, help="The benchmark the samples are for.")
@option("--check-flaky", type=click.IntRange(min=0), default=0, help="Execute N times more.")
@option("--compare-extraction", is_flag=True, help="Say how many verdicts depend on each rule.")
@judging
def score(
    samples_file: str,
    results_dir: Path,
    check_flaky: int,
    compare_extraction: bool,
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
        rules = dependences(config, evaluation, display) if compare_extraction else []
    if check_flaky:
        evaluation.result["flaky"] = changed
    if compare_extraction:
        evaluation.result["extraction"] = [codec.to_json(rule) for rule in rules]
    show(evaluation, as_json=as_json)
    if check_flaky and not as_json:
        click.echo(f"  flaky     {len(changed)} samples changed in {check_flaky} more executions")
        for sample, statuses in changed.items():
            click.echo(f"            {sample}: {', '.join(statuses)}")
    if compare_extraction and not as_json:
        click.echo("  without   samples that change, passes lost, passes gained")
        for rule in rules:
            click.echo(f"  {rule.rule:<12}{rule.samples:>6}{rule.lost:>8}{rule.gained:>8}")
