"""Options that several commands share; each has an environment variable ``ASSAY_*``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable


def option(flag: str, *names: str, **settings: Any) -> Callable[[Any], Any]:
    """A click option that can also be set as ``ASSAY_<FLAG>``."""
    name = flag.split("/")[0].lstrip("-").replace("-", "_")
    settings.setdefault("envvar", f"ASSAY_{name.upper()}")
    settings.setdefault("show_envvar", True)
    settings.setdefault("show_default", settings.get("default") is not None)
    return click.option(flag, *names, **settings)


results_dir = option(
    "--results-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default="results",
    help="Folder of runs and results.",
)
data_dir = option(
    "--data",
    "data_dir",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    envvar="ASSAY_DATA_DIR",
    help="Folder with benchmark data, looked into first.",
)
as_json = option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")


def judging(command: Callable[..., Any]) -> Callable[..., Any]:
    """What every command that executes programs can be told."""
    for one in (
        option("--split", default="", help="Part of the benchmark, such as train of mbpp."),
        option("--sandbox", default="process", help="Where programs are executed."),
        option("--sandbox-tier", default="auto", help="Least isolation: root, user, landlock."),
        option(
            "--workers", type=int, default=0, help="Programs judged at a time; 0: one per core."
        ),
        option("--check-references", is_flag=True, help="Run the reference solutions once more."),
        option("--no-cache", is_flag=True, help="Execute also what was executed before."),
        data_dir,
        results_dir,
        option(
            "--resume/--fresh",
            "resume",
            default=True,
            envvar="ASSAY_RESUME",
            help="Continue the same run if there is one, or start anew.",
        ),
        as_json,
    )[::-1]:
        command = one(command)
    return command
