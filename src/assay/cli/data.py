"""``assay data``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from assay.cli._groups import FullGroup, switch
from assay.cli._options import as_json, data_dir
from assay.cli._output import echo, echo_json, echo_result, note
from assay.cli._progress import ProgressDisplay
from assay.datasets.catalogue import DataState, choose_files, download_data, find_data, verify_data
from assay.errors import DataError
from assay.pipeline.score import check_data_references
from assay.report.text import table

DAMAGED = 1
names = click.argument("names", nargs=-1, metavar="[NAME]...")


@click.group(cls=FullGroup)
def data() -> None:
    """List, download and verify the data files of the benchmarks.

    \b
    Examples:
      assay data list
      assay data download humanevalplus mbppplus
      assay data verify
    """


@data.command("list")
@data_dir
@as_json
def list_(data_dir: Path | None, as_json: bool) -> None:
    """List the data files: version, records, licence, and where they are.

    \b
    Example:
      assay data list --data path/to/folder
    """
    states = [find_data(wanted, data_dir) for wanted in choose_files(())]
    headings = ("name", "version", "records", "licence", "found")
    rows = [
        (f.name, f.version, str(f.records), f.licence, one.path or "not found")
        for one in states
        for f in [one.file]
    ]
    echo_result(list(map(_describe, states)), lambda: table([headings, *rows]), as_json=as_json)


@data.command()
@names
@data_dir
@as_json
def download(names: tuple[str, ...], data_dir: Path | None, as_json: bool) -> None:
    """Download the named data files, or all, into the cache. Files that exist are kept.

    \b
    Example:
      assay data download humanevalplus
    """
    fetched: list[DataState] = []
    failed: list[DataState] = []
    for wanted in choose_files(names):
        if not names and wanted.origin:  # has no address, so that its user must get it
            continue
        state = download_data(wanted, (lambda _: None) if as_json else note, data_dir)
        (fetched if state.path else failed).append(state)
        if state.path and not as_json:
            echo(f"{wanted.name}  {state.path}")
    if as_json:
        echo_json(list(map(_describe, fetched)))
    if len(failed) > 1:
        for one in failed:
            note(one.detail)
        raise DataError(
            f"data files: {len(failed)} of {len(fetched) + len(failed)} were not downloaded. "
            "See the reasons above."
        )
    if failed:
        raise DataError(failed[0].detail)


@data.command("verify")
@names
@switch("--run-references", "Also run and judge every reference solution.")
@data_dir
@as_json
def verify_(
    names: tuple[str, ...], run_references: bool, data_dir: Path | None, as_json: bool
) -> None:
    """Verify the data files on this machine: number of records and digest.

    The exit code is 1 if a file is damaged. A reference solution that fails on this machine does
    not count as damage, but its task cannot be scored here.

    \b
    Example:
      assay data verify
    """
    states = [verify_data(wanted, data_dir) for wanted in choose_files(names)]
    references: dict[str, dict[str, str]] = {}
    for one in states if run_references else ():
        if one.state == "ok":
            with ProgressDisplay(one.file.name, quiet=as_json) as display:
                references[one.file.name] = check_data_references(one.file.name, data_dir, display)
    if as_json:
        echo_json([_describe_verified(one, references.get(one.file.name)) for one in states])
    else:
        echo(*table([(one.file.name, one.state, one.detail or one.path or "") for one in states]))
        for name, reasons in references.items():
            echo(*_describe_references(name, reasons))
    if any(one.state == "damaged" for one in states):
        click.get_current_context().exit(DAMAGED)


def _describe(state: DataState) -> dict[str, object]:
    fields = ("name", "version", "records", "licence", "sha256")
    return {field: getattr(state.file, field) for field in fields} | {"path": state.path}


def _describe_verified(state: DataState, references: dict[str, str] | None) -> dict[str, object]:
    row = _describe(state)
    row |= {"state": state.state, "path": row.pop("path"), "detail": state.detail}
    return row if references is None else row | {"references": references}


def _describe_references(name: str, reasons: dict[str, str]) -> Iterator[str]:
    if reasons:
        passing = sum(not reason for reason in reasons.values())
        yield f"{name}: {passing} of {len(reasons)} references pass"
        yield from (f"  {task_id}: {reason}" for task_id, reason in reasons.items() if reason)
