"""Options that select problems of a benchmark."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.cli._groups import option
from assay.pipeline import ProblemSelection

if TYPE_CHECKING:
    from collections.abc import Callable

problem_options = (
    option(
        "--problems",
        "--samples",
        "problems",
        default="0",
        metavar="N|A:B",
        envvar=["ASSAY_PROBLEMS", "ASSAY_SAMPLES"],
        help="Only the first N problems; or A:B, problems A to B - 1, counted from 0; 0 selects "
        "all. --samples is the old name.",
    ),
    option(
        "--task",
        "tasks",
        multiple=True,
        metavar="ID",
        help="Only the problem with this task id. Can be repeated.",
    ),
    option(
        "--from-file",
        "tasks_file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Only the problems whose task ids are listed in this file, one per line.",
    ),
    option(
        "--from",
        "first_day",
        default="",
        metavar="YYYY-MM-DD",
        help="Only the problems that were published on this day or later.",
    ),
    option(
        "--to",
        "last_day",
        default="",
        metavar="YYYY-MM-DD",
        help="Only the problems that were published on this day or earlier.",
    ),
    option(
        "--label",
        "labels",
        multiple=True,
        metavar="NAME=VALUE",
        help="Only the problems with this label, such as difficulty=hard. Can be repeated.",
    ),
)


def with_selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with these options as one argument, ``problems``."""

    @functools.wraps(command)
    def call(
        problems: str,
        tasks: tuple[str, ...],
        tasks_file: Path | None,
        first_day: str,
        last_day: str,
        labels: tuple[str, ...],
        **others: Any,
    ) -> Any:
        selection = ProblemSelection(problems, tasks, tasks_file, first_day, last_day, labels)
        return command(problems=selection, **others)

    return call
