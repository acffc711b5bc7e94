"""``assay data``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from assay.benchmarks import benchmarks
from assay.cli._options import as_json, data_dir, option
from assay.cli._output import echo, echo_json, note
from assay.cli._progress import ProgressDisplay
from assay.datasets.catalogue import DataFile, data_files, find, locate, verify
from assay.errors import DataError
from assay.pipeline import JudgeConfig, check_references
from assay.report.text import table

DAMAGED = 1
names = click.argument("names", nargs=-1, metavar="[NAME]...")


@click.group()
def data() -> None:
    """See, fetch and check the data of the benchmarks.

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
    rows = [_described(wanted) | {"path": _found(wanted, data_dir)} for wanted in _chosen(())]
    if as_json:
        echo_json(rows)
        return
    headings = ("name", "version", "records", "licence", "found")
    lines = [
        (r["name"], r["version"], str(r["records"]), r["licence"], r["path"] or "not here")
        for r in rows
    ]
    echo(*table([headings, *lines]))


@data.command()
@names
@data_dir
@as_json
def download(names: tuple[str, ...], data_dir: Path | None, as_json: bool) -> None:
    """Fetch the named data files, or all, into the cache; what is here already stays.

    \b
    Example:
      assay data download humanevalplus
    """
    rows, failures = [], []
    for wanted in _chosen(names):
        try:
            path = locate(wanted, _quiet if as_json else note, data_dir)
        except DataError as error:
            failures.append(str(error))
            continue
        rows.append(_described(wanted) | {"path": str(path)})
        if not as_json:
            echo(f"{wanted.name}  {path}")
    if as_json:
        echo_json(rows)
    if len(failures) > 1:
        for failure in failures:
            note(failure)
        raise DataError(f"{len(failures)} of {len(rows) + len(failures)} files were not fetched")
    if failures:
        raise DataError(failures[0])


@data.command("verify")
@names
@option("--run-references", is_flag=True, help="Also judge every reference solution.")
@data_dir
@as_json
def verify_(
    names: tuple[str, ...], run_references: bool, data_dir: Path | None, as_json: bool
) -> None:
    """Check the data files that are here: every record is counted and part of the digest.

    Exit code 1 when one is damaged. Reference solutions that fail on this machine are no damage;
    their tasks cannot be scored here.

    \b
    Example:
      assay data verify
    """
    rows = [_described(wanted) | _state(wanted, data_dir) for wanted in _chosen(names)]
    if run_references:
        for row in rows:
            if row["state"] == "ok":
                row["references"] = _references(row["name"], data_dir, quiet=as_json)
    if as_json:
        echo_json(rows)
    else:
        echo(*table([(r["name"], r["state"], r["detail"] or r["path"] or "") for r in rows]))
        for row in rows:
            echo(*_told_references(row))
    if any(row["state"] == "damaged" for row in rows):
        click.get_current_context().exit(DAMAGED)


def _chosen(names: tuple[str, ...]) -> list[DataFile]:
    return [data_files.get(name) for name in names or data_files.names()]


def _described(wanted: DataFile) -> dict[str, Any]:
    fields = ("name", "version", "records", "licence", "sha256")
    return {field: getattr(wanted, field) for field in fields}


def _found(wanted: DataFile, data_dir: Path | None) -> str | None:
    place = find(wanted, data_dir)
    return str(place.path) if place else None


def _state(wanted: DataFile, data_dir: Path | None) -> dict[str, Any]:
    path = None
    try:
        place = find(wanted, data_dir)
        if place is None:
            return {"state": "not here", "path": None, "detail": ""}
        path = str(place.path)
        verify(wanted, place)
    except DataError as error:
        return {"state": "damaged", "path": path, "detail": str(error)}
    return {"state": "ok", "path": path, "detail": ""}


def _references(name: str, data_dir: Path | None, *, quiet: bool) -> dict[str, str]:
    """Of the largest benchmark that is made from this file."""
    if data_files.get(name).is_text:
        return {}
    benchmark = f"{name}-all" if f"{name}-all" in benchmarks.names() else name
    config = JudgeConfig(benchmark, results_dir=Path(), data_dir=data_dir)
    with ProgressDisplay(benchmark, quiet=quiet) as display:
        return check_references(config, display)


def _told_references(row: dict[str, Any]) -> Iterator[str]:
    if told := row.get("references"):
        passing = sum(not reason for reason in told.values())
        yield f"{row['name']}: {passing} of {len(told)} references pass"
        yield from (f"  {task_id}: {reason}" for task_id, reason in told.items() if reason)


def _quiet(_: str) -> None:
    pass
