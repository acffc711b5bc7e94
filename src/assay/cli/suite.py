"""``assay suite``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay import api, runs
from assay.cli._groups import DATA, GroupedCommand, option, switch
from assay.cli._options import (
    FILE,
    as_json,
    data_dir,
    no_cache,
    open_site,
    parity_gate,
    results_dir,
    resume,
    sandbox_options,
)
from assay.cli._options import ray as ray_option
from assay.cli._output import INCOMPLETE, echo_result
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
@click.argument("file", type=FILE)
@switch(
    "--dry-run",
    "Print the plan and exit: requests, tokens, and the time estimated from earlier runs.",
    group=DATA,
)
@option(
    "--problems",
    "Only the first N problems of every benchmark; or A:B, problems A to B - 1, counted from "
    "0. Default: as in the suite file.",
    group=DATA, of="suite", default="", metavar="N|A:B",
)  # fmt: skip
@sandbox_options
@parity_gate
@no_cache
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
    if dry_run:
        with ProgressDisplay(file.stem, quiet=as_json) as display:
            plan = api.plan_suite(file, base, display)
        echo_result(plan, lambda: summarize_plan(plan), as_json=as_json)
        return
    with open_site(file.stem, ray, quiet=as_json) as (display, site):
        base = dataclasses.replace(base, site=site)
        done = api.evaluate_suite(file, base, display, parity_gate=parity_gate)
    show_suite(done, as_json=as_json)


def show_suite(done: SuiteResult, *, as_json: bool, publishable: bool = False) -> None:
    """Print the outcome of a suite. Exit with code 3 if something of it is missing.

    Raise RunError if every evaluation failed.
    """
    results = list(map(runs.render_result, done.results))
    record = {**codec.to_json(done.record), "results": results}
    echo_result(record, lambda: summarize_suite(done), as_json=as_json)
    if done.outcomes and not done.results:
        raise RunError(f"Every evaluation failed. The first error is: {done.failures[0].error}")
    if publishable:
        require_publishable(done.results)
    if not done.complete:
        click.get_current_context().exit(INCOMPLETE)
