"""``assay score``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from assay import codec
from assay.cli._format import INCOMPLETE, describe_coverage, describe_gap
from assay.cli._options import judging, option
from assay.cli._output import echo, echo_json
from assay.cli._progress import ProgressDisplay
from assay.cli.eval import exit_if_incomplete, show
from assay.errors import UsageError
from assay.pipeline import ScoreConfig, flaky
from assay.pipeline import score as run_score
from assay.pipeline.cross_check import PeerScore, disagreements, peer_score
from assay.pipeline.extraction import dependences

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
            _show_peer(peer, as_json=as_json)
            if not peer.coverage.complete:
                click.get_current_context().exit(INCOMPLETE)
            return
        evaluation = run_score(config, display)
        changed = flaky(config, evaluation, check_flaky, display)
        rules = dependences(config, evaluation, display) if compare_extraction else []
        differing = disagreements(config, evaluation, peer, display) if peer is not None else []
    if check_flaky:
        evaluation.result["flaky"] = changed
    if compare_extraction:
        evaluation.result["extraction"] = [codec.to_json(rule) for rule in rules]
    if peer is not None:
        evaluation.result["cross_check"] = {
            "engine": peer.engine,
            "samples": len(peer.verdicts),
            "disagreements": list(map(codec.to_json, differing)),
        }
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


def _show_peer(peer: PeerScore, *, as_json: bool) -> None:
    coverage = describe_coverage(peer.coverage)
    if as_json:
        verdicts = [
            {"task_id": task_id, "sample": sample, **codec.to_json(verdict)}
            for (task_id, sample), verdict in peer.verdicts.items()
        ]
        scores = {f"pass_at_{e.k}": codec.to_json(e) for e in peer.estimates}
        told = {
            "engine": peer.engine, "benchmark": peer.benchmark, "results": scores,
            "not_generated": peer.not_generated, "coverage": coverage,
        }  # fmt: skip
        echo_json({**told, "verdicts": verdicts})
        return
    if gap := describe_gap({"coverage": coverage}):
        echo(f"incomplete: {gap}; the score is about these alone")
    without = f", {peer.not_generated} not generated" if peer.not_generated else ""
    judged = f"{len(peer.verdicts)} samples{without}"
    echo(f"{peer.benchmark} · judged by {peer.engine} · {judged}")
    for found in peer.estimates:
        interval = f"[{100 * found.low:.1f}, {100 * found.high:.1f}]"
        echo(f"  pass@{found.k:<4} {100 * found.value:.1f} %  {interval} (95 %)")
