"""``assay suite``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay import api, runs
from assay.cli._choices import add_sandbox_options
from assay.cli._cluster import open_site
from assay.cli._cluster import ray as ray_option
from assay.cli._groups import DATA, GPU_CHECKS, JUDGING, GroupedCommand
from assay.cli._options import (
    as_json,
    data_dir,
    option,
    results_dir,
    resume,
)
from assay.cli._output import INCOMPLETE, echo, echo_json
from assay.cli._progress import ProgressDisplay
from assay.data import codec
from assay.errors import RunError
from assay.pipeline import EvalConfig, ProblemSelection
from assay.report.suite import summarize_plan, summarize_suite
from assay.runs.marks import require_publishable

if TYPE_CHECKING:
    from typing import Any

    from assay.pipeline.suite.run import SuiteResult


@click.command(cls=GroupedCommand)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@option(
    "--dry-run", group=DATA, is_flag=True,
    help="Print the plan and exit: requests, tokens, and the time estimated from earlier runs.",
)  # fmt: skip
@option(
    "--problems", group=DATA, default="", metavar="N|A:B", envvar="ASSAY_SUITE_PROBLEMS",
    help="Only the first N problems of every benchmark; or A:B, problems A to B - 1, counted from "
    "0. Default: as in the suite file.",
)  # fmt: skip
@add_sandbox_options
@option(
    "--parity-gate/--no-parity-gate", "parity_gate", group=GPU_CHECKS, default=True,
    help="Whether to compare GPU and CPU logits first, once per model and device.",
)  # fmt: skip
@option("--no-cache", group=JUDGING, is_flag=True, help="Ignore cached verdicts and completions.")
@ray_option
@data_dir
@results_dir
@resume
@as_json
def suite(
    file: Path, dry_run: bool, problems: str, resume: bool, parity_gate: bool, as_json: bool,
    ray: str, **settings: Any,
) -> None:  # fmt: skip
    """Evaluate several models on several benchmarks, as a YAML file lists them.

    Each model is loaded once. The same command resumes a suite that was interrupted. If a model
    fails, the others are still evaluated, and the exit code is 3.

    \b
    Examples:
      assay suite overnight.yaml --dry-run
      assay suite overnight.yaml
    """
    base = EvalConfig(
        benchmark="", problems=ProblemSelection(problems), fresh=not resume, **settings
    )
    with ProgressDisplay(file.stem, quiet=as_json) as display:
        if dry_run:
            plan = api.plan_suite(file, base, display)
        else:
            with open_site(ray, display) as site:
                base = dataclasses.replace(base, site=site)
                done = api.evaluate_suite(file, base, display, parity_gate=parity_gate)
    if dry_run:
        if as_json:
            echo_json(plan)
        else:
            echo(*summarize_plan(plan))
        return
    show_suite(done, as_json=as_json)


def show_suite(done: SuiteResult, *, as_json: bool, publishable: bool = False) -> None:
    """Print the outcome of a suite. Exit with code 3 if something of it is missing.

    Raise RunError if every evaluation failed.
    """
    if as_json:
        results = list(map(runs.render_result, done.results))
        echo_json({**codec.to_json(done.record), "results": results})
    else:
        echo(*summarize_suite(done))
    if done.outcomes and not done.results:
        raise RunError(f"Every evaluation failed. The first error is: {done.failures[0].error}")
    if publishable:
        require_publishable(done.results)
    if not done.complete:
        click.get_current_context().exit(INCOMPLETE)
