"""``assay score``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from assay import codec
from assay.cli._options import judging, option
from assay.cli._output import echo
from assay.cli._progress import ProgressDisplay
from assay.cli.eval import exit_if_incomplete, show
from assay.errors import UsageError
from assay.pipeline import ScoreConfig, flaky
from assay.pipeline import score as run_score
from assay.pipeline.cross_check import disagreements, peer_score, write_peer_score
from assay.pipeline.extraction import dependences
from assay.runs import add_checks

OURS = "assay"


@click.command()
@click.argument("samples_file", metavar="SAMPLES.jsonl")
@option("--benchmark", required=True, help="The benchmark the samples are for.")
@option("--partial", is_flag=True, help="Score a file that lacks samples, as incomplete.")
@option("--check-flaky", type=click.IntRange(min=0), default=0, help="Execute N times more.")
@option("--compare-extraction", is_flag=True, help="Say how many verdicts depend on each rule.")
@option("--engine", default=OURS, help="Who judges: assay, or an installed evalplus.")
@option("--cross-check", is_flag=True, help="Judge with both, and list where they disagree.")
@option("--name", "model_name", default="", help="Name of the model that wrote the completions.")
@judging
def score(
    samples_file: str,
    results_dir: Path,
    check_flaky: int,
    compare_extraction: bool,
    engine: str,
    cross_check: bool,
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
    if cross_check and engine == OURS:
        raise UsageError("--cross-check needs another judge: --engine evalplus")
    with ProgressDisplay(config.benchmark, quiet=as_json) as display:
        peer = peer_score(config, engine, display) if engine != OURS else None
        if peer is not None and not cross_check:
            evaluation = write_peer_score(config, peer, display)
            show(evaluation, as_json=as_json)
            exit_if_incomplete([evaluation])
            return
        evaluation = run_score(config, display)
        changed = flaky(config, evaluation, check_flaky, display)
        rules = dependences(config, evaluation, display) if compare_extraction else []
        differing = disagreements(config, evaluation, peer, display) if peer is not None else []
    checks: dict[str, Any] = {}
    if check_flaky:
        checks["flaky"] = changed
    if compare_extraction:
        checks["extraction"] = [codec.to_json(rule) for rule in rules]
    if peer is not None:
        checks["cross_check"] = {
            "engine": peer.engine,
            "samples": len(peer.verdicts),
            "disagreements": list(map(codec.to_json, differing)),
        }
    if checks:
        add_checks(evaluation.path, evaluation.result, checks)
    show(evaluation, as_json=as_json)
    if peer is not None and not as_json:
        unexplained = sum(not one.explained for one in differing)
        echo(
            f"  {peer.engine:<9} {len(differing)} of {len(peer.verdicts)} verdicts differ, "
            f"{unexplained} unexplained"
        )
        for one in differing:
            echo(f"            {one.task_id}#{one.sample}  ours {one.ours[:120]}")
            why = f" ({one.explained})" if one.explained else ""
            echo(f"            {'':<{len(one.task_id) + 2}}  theirs {one.theirs}{why}")
    if check_flaky and not as_json:
        echo(f"  flaky     {len(changed)} samples changed in {check_flaky} more executions")
        for sample, statuses in changed.items():
            echo(f"            {sample}: {', '.join(statuses)}")
    if compare_extraction and not as_json:
        echo("  without   samples that change, passes lost, passes gained")
        for rule in rules:
            echo(f"  {rule.rule:<12}{rule.samples:>6}{rule.lost:>8}{rule.gained:>8}")
    exit_if_incomplete([evaluation])
