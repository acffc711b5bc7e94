"""List the registered benchmarks, and where their data is."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from assay.benchmarks import OwnBenchmark, benchmarks, read_own
from assay.datasets.catalogue import check_data
from assay.report.text import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.benchmarks import Description
    from assay.datasets.catalogue import DataState

# built-in: part of the package; verified, damaged: on this machine; not-here: not downloaded yet;
# own-files: the user gets them; unknown: the benchmark has no description.
DataStatus = Literal["built-in", "verified", "damaged", "not-here", "own-files", "unknown"]
STATUSES: dict[str, DataStatus] = {"ok": "verified", "damaged": "damaged", "not here": "not-here"}
OWN = "own"  # the group of users' own files
HEADINGS = ("group", "benchmark", "problems", "licence", "programs can import", "data")


@dataclass(frozen=True, slots=True)
class BenchmarkState:
    """A benchmark, and the state of its data on this machine. Unknown facts are None."""

    name: str
    problems: int | None = None
    licence: str | None = None
    environment: str | None = None  # package set; empty: only the standard library
    version: str | None = None  # of the data
    sha256: str | None = None  # of the data file as it was released
    data: DataStatus = "unknown"
    path: str | None = None
    detail: str = ""  # what is wrong with the data
    group: str | None = None  # what the problems ask for
    suites: tuple[str, ...] = ()  # named lists of benchmarks that it is part of
    description: str = ""  # of a user's own file


def list_benchmarks(data_dir: Path | None = None) -> list[BenchmarkState]:
    """Return all benchmarks, those of plug-ins included. Problems are not loaded."""
    states: dict[str, DataState] = {}  # of data files; several benchmarks share one
    return [
        _state(name, benchmarks.describe(name), states, data_dir) for name in benchmarks.names()
    ]


def list_own_benchmarks(files: Sequence[str]) -> list[BenchmarkState]:
    """Return the benchmarks of users' own files. Raise an error if one has mistakes."""
    return [_own_state(read_own(Path(file), benchmarks.names())) for file in files]


def _own_state(own: OwnBenchmark) -> BenchmarkState:
    found = own.benchmark
    return BenchmarkState(
        found.name, len(found.problems), own.licence or None, found.environment, found.version,
        found.data_sha256, "own-files", str(own.path), group=OWN, description=own.description,
    )  # fmt: skip


def render_benchmarks(states: Sequence[BenchmarkState]) -> list[str]:
    """Return the lines of a table of benchmarks by group, and a line for each named suite."""
    rows = [
        (s.group or "unknown", s.name, _number(s.problems), s.licence or "unknown", _packages(s),
         _data(s))
        for s in sorted(states, key=lambda s: (s.group or "~", s.name))
    ]  # fmt: skip
    return [*table([HEADINGS, *rows]), *_suites(states)]


def _suites(states: Sequence[BenchmarkState]) -> list[str]:
    names = sorted({suite for state in states for suite in state.suites})
    return [
        f"suite {suite}: {', '.join(state.name for state in states if suite in state.suites)}"
        for suite in names
    ]


def _state(
    name: str, about: Description | None, states: dict[str, DataState], data_dir: Path | None
) -> BenchmarkState:
    if about is None:
        return BenchmarkState(name)
    found = BenchmarkState(
        name, about.problems, about.licence or None, about.environment, group=about.group,
        suites=about.suites,
    )  # fmt: skip
    if about.place:
        return dataclasses.replace(found, data="own-files", path=about.place)
    if (wanted := about.data) is None:
        return dataclasses.replace(found, data="built-in")
    if wanted.name not in states:
        states[wanted.name] = check_data(wanted, data_dir)
    state = states[wanted.name]
    if wanted.origin and state.state == "not here":  # cannot be downloaded
        return dataclasses.replace(found, data="own-files", path=wanted.path)
    return dataclasses.replace(
        found, version=wanted.version, sha256=wanted.sha256, data=STATUSES[state.state],
        path=state.path, detail=state.detail,
    )  # fmt: skip


def _number(count: int | None) -> str:
    return "unknown" if count is None else str(count)


def _packages(state: BenchmarkState) -> str:
    if state.environment is None:
        return "unknown"
    return f"environment {state.environment}" if state.environment else "standard library"


def _data(state: BenchmarkState) -> str:
    match state.data:
        case "verified":
            return f"{state.path} (sha256 verified)"
        case "damaged":
            return state.detail
        case "not-here":
            return "downloaded on first use"
        case "built-in":
            return "part of the package"
        case "own-files" if state.group == OWN:
            return str(state.path)
        case "own-files":
            return f"not downloaded, add it yourself: {state.path}"
    return "unknown"
