"""``assay benchmark``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay import api
from assay.cli._choices import sandbox_options
from assay.cli._groups import DATA, JUDGING, FullGroup, GroupedCommand, add_options, in_group
from assay.cli._options import as_json, data_dir, option
from assay.cli._output import echo, echo_json
from assay.cli._problems import problem_options, with_selection
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


def check_options(command: Any) -> Any:
    """Add the options of a check. The command gets ``problems``, a ProblemSelection."""
    judging = (
        option(
            "--repeat", group=JUDGING, metavar="N", type=int, default=3,
            help="Number of times to judge every reference, to find flaky tests.",
        ),
        *sandbox_options,
    )  # fmt: skip
    selected = with_selection(command)
    selection = in_group(DATA, *problem_options)
    return add_options(selected, *judging, *selection, data_dir, as_json)


@benchmark.command(cls=GroupedCommand)
@click.argument("name", metavar="FILE|NAME")
@check_options
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
        found = api.run_check(config, repeat, display)
    if as_json:
        echo_json(render_check(found))
    else:
        echo(*summarize_check(found))
    if found.errors:
        click.get_current_context().exit(FAULTY)
