"""List the registered benchmarks and where their data is; write the outcome of a check of one."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from assay.benchmarks import Description, benchmarks, read_own
from assay.data import codec
from assay.data.printable import quantity
from assay.datasets.catalogue import DataState, check_data
from assay.pipeline.benchmark_check import KINDS, BenchmarkCheck, BenchmarkFinding
from assay.report.text import table

# built-in: part of the package; verified, damaged: on this machine; not-here: not downloaded yet;
# own-files: the user gets them; unknown: the benchmark has no description.
DataStatus = Literal["built-in", "verified", "damaged", "not-here", "own-files", "unknown"]
STATUSES: dict[str, DataStatus] = {"ok": "verified", "damaged": "damaged", "not here": "not-here"}
OWN = "own"  # the group of users' own files
HEADINGS = ("group", "benchmark", "problems", "licence", "programs can import", "data")
MOST_ROWS = 20  # of one kind
LONGEST = 160  # characters of a line


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
    states = []
    for own in (read_own(Path(file), benchmarks.names()) for file in files):
        one, licence = own.benchmark, own.licence or None
        states.append(
            BenchmarkState(
                one.name, len(one.problems), licence, one.environment, one.version, one.data_sha256,
                "own-files", str(own.path), group=OWN, description=own.description,
            )
        )  # fmt: skip
    return states


def render_benchmarks(states: Sequence[BenchmarkState]) -> list[str]:
    """Return the lines of a table of benchmarks by group, and a line for each named suite."""
    rows = [
        (
            s.group or "unknown", s.name, "unknown" if s.problems is None else str(s.problems),
            s.licence or "unknown", _packages(s), _data(s),
        )
        for s in sorted(states, key=lambda s: (s.group or "~", s.name))
    ]  # fmt: skip
    suites = sorted({suite for state in states for suite in state.suites})
    return [
        *table([HEADINGS, *rows]),
        *(
            f"suite {suite}: {', '.join(state.name for state in states if suite in state.suites)}"
            for suite in suites
        ),
    ]


def _state(
    name: str, about: Description | None, states: dict[str, DataState], data_dir: Path | None
) -> BenchmarkState:
    if about is None:
        return BenchmarkState(name)
    entry = BenchmarkState(
        name, about.problems, about.licence or None, about.environment, group=about.group,
        suites=about.suites,
    )  # fmt: skip
    if about.place:
        return dataclasses.replace(entry, data="own-files", path=about.place)
    if (wanted := about.data) is None:
        return dataclasses.replace(entry, data="built-in")
    if wanted.name not in states:
        states[wanted.name] = check_data(wanted, data_dir)
    state = states[wanted.name]
    if wanted.origin and state.state == "not here":  # cannot be downloaded
        return dataclasses.replace(entry, data="own-files", path=wanted.path)
    return dataclasses.replace(
        entry, version=wanted.version, sha256=wanted.sha256, data=STATUSES[state.state],
        path=state.path, detail=state.detail,
    )  # fmt: skip


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


def summarize_check(check: BenchmarkCheck) -> list[str]:
    """Return the lines of a table of findings, and of a summary."""
    counts = Counter(one.kind for one in check.findings)
    rows: list[tuple[str, ...]] = []
    for kind, count in counts.items():
        listed = [one for one in check.findings if one.kind == kind]
        rows += [(one.severity, kind, one.task_id, _describe(one)) for one in listed[:MOST_ROWS]]
        if count > MOST_ROWS:
            more = f"{count - MOST_ROWS} more, which --json lists"
            rows.append((listed[0].severity, kind, "…", more))
    lines = table([("", "finding", "task", "detail"), *rows]) if rows else []
    times = f"{check.repeat} times" if check.repeat > 1 else "once"
    return [
        *lines,
        f"{check.benchmark} {check.version}: {quantity(check.problems, 'problem')}",
        f"  references  {check.references_passed} of {check.references} pass, judged {times}",
        f"  tests       {check.problems - check.shared} in a separate process, {check.shared} in "
        "the program's interpreter",
        f"  findings    {quantity(check.errors, 'error')}, {quantity(check.warnings, 'warning')}",
    ]


def _describe(finding: BenchmarkFinding) -> str:
    """Return what the kind of finding means, and the detail."""
    meaning = KINDS[finding.kind][1]
    line = " ".join(f"{meaning}: {finding.detail}".split()) if finding.detail else meaning
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def render_check(check: BenchmarkCheck) -> dict[str, Any]:
    """Return a check as JSON-ready data, with the severity of each finding."""
    findings = [{"severity": one.severity, **codec.to_json(one)} for one in check.findings]
    counts = {"errors": check.errors, "warnings": check.warnings}
    return {**codec.to_json(check), **counts, "findings": findings}
