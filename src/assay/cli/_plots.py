"""The option ``--plot``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay.cli._groups import OUTPUT, Declaration, option

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.report.plots import Drawing


def plot_option(content: str) -> Declaration:
    """Return the option of a command whose plot has this content."""
    return option(
        "--plot", "plot_path", group=OUTPUT, callback=_check,
        type=click.Path(path_type=Path, dir_okay=False),
        help=f"SVG or PNG file to write with {content}. PNG needs the report extra.",
    )  # fmt: skip


def _check(_context: click.Context, _parameter: click.Parameter, value: Path | None) -> Path | None:
    if value is not None:
        from assay.report.figures import check_plot_file  # costs time, and is rarely needed

        check_plot_file(value)
    return value


def save_plot(path: Path | None, draw: Callable[[], Drawing]) -> None:
    """Draw and write a plot if the user wants one."""
    if path is not None:
        from assay.report.figures import write_plot

        write_plot(path, draw())
