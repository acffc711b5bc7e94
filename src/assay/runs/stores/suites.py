"""Record a suite: its runs and their states, the targets, and scores that others published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from assay.data import codec
from assay.data.writing import make_folder, write_whole
from assay.errors import RunError
from assay.runs._files import DOCUMENTS

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = 1
FOLDER = "suites"  # in the results folder
State = Literal["pending", "complete", "incomplete", "failed"]


@dataclass(frozen=True, slots=True)
class SuiteBaseline:
    """A score that someone else published. It was not measured by assay."""

    benchmark: str
    model: str
    score: float  # share of problems, 0 to 1
    figure: str = "pass@1"
    source: str = ""  # where it was published


@dataclass(frozen=True, slots=True)
class Target:
    """A score that the models of a suite are to reach."""

    benchmark: str
    score: float
    figure: str = "pass@1"


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """One evaluation of a suite."""

    model: str
    benchmark: str
    strategy: str
    decoding: str
    state: State = "pending"
    run: str = ""  # name of its folder in the results folder; none: not begun
    protocol: str = ""  # hash
    error: str = ""  # why it failed


@dataclass(frozen=True, slots=True)
class SuiteRecord:
    """The content of a suite's file in the results folder."""

    suite: str
    timestamp: str  # of the last change
    rows: tuple[SuiteRow, ...]
    targets: tuple[Target, ...] = ()
    baselines: tuple[SuiteBaseline, ...] = ()  # not measured by assay
    schema: int = SCHEMA


def suite_path(results_dir: Path, name: str) -> Path:
    """Return the path of a suite's record."""
    return results_dir / FOLDER / f"{name}.json"


def write_suite(path: Path, record: SuiteRecord) -> None:
    """Write the record in one step."""
    make_folder(path.parent)
    write_whole(path, codec.pretty(record))


def read_suite(path: Path) -> SuiteRecord:
    """Read a record. Raise RunError if it is not valid."""
    content = DOCUMENTS.read_json(path)
    try:
        record = codec.read_known(SuiteRecord, content)
    except ValueError as error:
        raise RunError(
            f"{path}: is not the record of a suite ({error}). Give another file."
        ) from error
    if record.schema != SCHEMA:
        raise RunError(f"{path}: has schema {record.schema}, not {SCHEMA}. Update assay.")
    return record


def list_suites(results_dir: Path) -> list[SuiteRecord]:
    """Return the records of all suites of a results folder, by name."""
    return [read_suite(path) for path in sorted((results_dir / FOLDER).glob("*.json"))]
