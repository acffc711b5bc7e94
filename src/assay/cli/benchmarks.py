"""``assay benchmarks``."""

from __future__ import annotations

from pathlib import Path

import click

from assay.cli._options import as_json, data_dir
from assay.cli._output import echo_result
from assay.report.benchmarks import list_benchmarks, list_own_benchmarks, render_benchmarks


@click.command("benchmarks")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@data_dir
@as_json
def list_all(files: tuple[str, ...], data_dir: Path | None, as_json: bool) -> None:
    """List the benchmarks by group: problems, licence, packages, and where the data is.

    With FILE, your own benchmarks in YAML or JSONL are listed instead.

    The last lines list named suites, which `assay eval` accepts in place of a benchmark.

    Data that is not on this machine is downloaded when a command first needs it. Packages other
    than the standard library come from an environment, which `assay env NAME` creates.

    \b
    Examples:
      assay benchmarks
      assay benchmarks ./mine.yaml
    """
    listed = list_own_benchmarks(files) if files else list_benchmarks(data_dir)
    echo_result(listed, lambda: render_benchmarks(listed), as_json=as_json)
