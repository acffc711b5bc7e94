"""``assay score``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from assay.cli._choices import JUDGES, list_choices
from assay.cli._cluster import open_site
from assay.cli._cluster import ray as ray_option
from assay.cli._groups import DATA, JUDGING, OUTPUT, GroupedCommand
from assay.cli._options import judging_options, option
from assay.cli._output import echo
from assay.cli._progress import ProgressDisplay
from assay.cli.eval import exit_if_incomplete, show
from assay.pipeline import ScoreConfig
from assay.pipeline.cross_check import OURS, ScoreChecks, score_and_check
from assay.report.summary import summarize_checks


@click.command(cls=GroupedCommand)
@click.argument("samples_file", metavar="SAMPLES.jsonl")
@option("--benchmark", group=DATA, required=True, help="Benchmark that the samples belong to.")
@option(
    "--partial",
    group=DATA,
    is_flag=True,
    help="Score a file that has samples for only some of the problems. The result is marked "
    "incomplete.",
)
@option(
    "--check-flaky",
    group=JUDGING,
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Execute every program N more times and list verdicts that change.",
)
@option(
    "--compare-extraction",
    group=JUDGING,
    is_flag=True,
    help="Count the verdicts that depend on each extraction rule.",
)
@option(
    "--engine",
    group=JUDGING,
    default=OURS,
    help=f"Judge to use: {list_choices(JUDGES)}. evalplus must be installed.",
)
@option(
    "--cross-check",
    group=JUDGING,
    is_flag=True,
    help="Judge with assay and --engine, and list where they disagree.",
)
@option(
    "--name", "model_name", group=OUTPUT, default="",
    help="Name of the model that generated the completions. Default: the name of the file.",
)  # fmt: skip
@ray_option
@judging_options
def score(
    samples_file: str,
    results_dir: Path,
    check_flaky: int,
    compare_extraction: bool,
    engine: str,
    cross_check: bool,
    resume: bool,
    as_json: bool,
    ray: str,
    **settings: Any,
) -> None:
    """Judge completions that were generated elsewhere.

    A line of the file is {"task_id", "completion"} with a continuation of the prompt, or
    {"task_id", "solution"} with a whole program or a chat answer. The completions.jsonl of a run
    works too.

    \b
    Example:
      assay score samples.jsonl --benchmark humaneval
    """
    config = ScoreConfig(
        samples_file=samples_file, results_dir=results_dir, fresh=not resume, **settings
    )
    checks = ScoreChecks(check_flaky, compare_extraction, engine, cross_check)
    with (
        ProgressDisplay(config.benchmark, quiet=as_json) as display,
        open_site(ray, display) as site,
    ):
        result = score_and_check(dataclasses.replace(config, site=site), checks, display)
    show(result, as_json=as_json)
    if not as_json:
        echo(*summarize_checks(checks.select(result), check_flaky))
    exit_if_incomplete([result])
