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
as_json = option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
