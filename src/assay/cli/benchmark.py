"""``assay benchmark``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay import api
from assay.cli._groups import JUDGING, FullGroup, GroupedCommand, option
from assay.cli._option_sets import problem_options
from assay.cli._options import as_json, data_dir, sandbox_options
from assay.cli._output import echo_result
from assay.cli._progress import ProgressDisplay
from assay.pipeline import JudgeConfig
from assay.report.benchmarks import render_check, summarize_check

if TYPE_CHECKING:
    from assay.pipeline import ProblemSelection

FAULTY = 1  # exit code: the benchmark has errors


@click.group(cls=FullGroup)
def benchmark() -> None:
    """Check a benchmark, such as one of your own.

    \b
    Example:
      assay benchmark check ./mine.yaml
    """


@benchmark.command(cls=GroupedCommand)
@click.argument("name", metavar="FILE|NAME")
@option(
    "--repeat", "Number of times to judge every reference, to find flaky tests.", group=JUDGING,
    metavar="N", default=3,
)  # fmt: skip
@sandbox_options
@problem_options
@data_dir
@as_json
def check(
    name: str, problems: ProblemSelection, repeat: int, as_json: bool, **settings: Any
) -> None:
    """Check a benchmark: references, flaky tests, tests that pass any program, duplicates, leaks.

    FILE is a benchmark of your own in YAML or JSONL, NAME a built-in one. Every reference is
    judged several times. An empty program and one that returns None must fail. Prompts must not
    repeat each other or contain the reference. The exit code is 1 if a finding is an error.

    \b
    Examples:
      assay benchmark check ./mine.yaml
      assay benchmark check humaneval --repeat 5
    """
    config = JudgeConfig(name, Path(), problems=problems, **settings)
    with ProgressDisplay(name, quiet=as_json) as display:
        result = api.run_check(config, repeat, display)
    echo_result(render_check(result), lambda: summarize_check(result), as_json=as_json)
    if result.errors:
        click.get_current_context().exit(FAULTY)
