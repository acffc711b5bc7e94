"""``assay score``."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from assay.cli._groups import DATA, JUDGING, OUTPUT, GroupedCommand, option, switch
from assay.cli._option_sets import judging_options
from assay.cli._options import JUDGES, list_choices, open_site
from assay.cli._options import ray as ray_option
from assay.cli._output import echo
from assay.cli.eval import exit_if_incomplete, show
from assay.pipeline import ScoreConfig
from assay.pipeline.cross_check import OURS, ScoreChecks, score_and_check
from assay.report.summary import summarize_checks


@click.command(cls=GroupedCommand)
@click.argument("samples_file", metavar="SAMPLES.jsonl")
@option("--benchmark", "Benchmark that the samples belong to.", group=DATA, required=True)
@switch(
    "--partial",
    "Score a file that has samples for only some of the problems. The result is marked incomplete.",
    group=DATA,
)
@option(
    "--check-flaky", "Execute every program N more times and list verdicts that change.",
    group=JUDGING, metavar="N", type=click.IntRange(min=0), default=0,
)  # fmt: skip
@switch(
    "--compare-extraction",
    "Count the verdicts that depend on each extraction rule.",
    group=JUDGING,
)
@option(
    "--engine", f"Judge to use: {list_choices(JUDGES)}. evalplus must be installed.", group=JUDGING,
    default=OURS,
)  # fmt: skip
@switch(
    "--cross-check", "Judge with assay and --engine, and list where they disagree.", group=JUDGING
)
@option(
    "--name", "Name of the model that generated the completions. Default: the name of the file.",
    "model_name", group=OUTPUT, default="",
)  # fmt: skip
@ray_option
@judging_options
def score(
    check_flaky: int, compare_extraction: bool, engine: str, cross_check: bool, resume: bool,
    as_json: bool, ray: str, **settings: Any,
) -> None:  # fmt: skip
    """Judge completions that were generated elsewhere.

    A line of the file is {"task_id", "completion"} with a continuation of the prompt, or
    {"task_id", "solution"} with a whole program or a chat answer. The completions.jsonl of a run
    works too.

    \b
    Example:
      assay score samples.jsonl --benchmark humaneval
    """
    config = ScoreConfig(fresh=not resume, **settings)
    checks = ScoreChecks(check_flaky, compare_extraction, engine, cross_check)
    with open_site(config.benchmark, ray, quiet=as_json) as (display, site):
        result = score_and_check(dataclasses.replace(config, site=site), checks, display)
    show(result, as_json=as_json)
    if not as_json:
        echo(*summarize_checks(checks.select(result), check_flaky))
    exit_if_incomplete([result])
