"""Find the files that a report is made of: runs, suites, and measurements of models."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from assay.errors import RunError
from assay.report.leaderboard.entries import name_runs
from assay.report.pages.model.documents import Measurement, read_measurement
from assay.runs import Result
from assay.runs.history import RunEntry, collect_runs, list_runs, read_own_result
from assay.runs.stores.suites import FOLDER, SuiteRecord, read_suite

SAFE_KEY = re.compile(r"[\w.+-]{1,200}", re.ASCII)


@dataclass(frozen=True, slots=True)
class RunSource:
    """A run: its entry in the history, and its folder if that is there."""

    key: str  # unique in the report: its name, with a number if two have the same
    entry: RunEntry
    folder: Path | None
    results_dir: Path
    model: str = ""  # its name, with the engine if another run has the same name


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything that a report shows, newest runs first."""

    runs: tuple[RunSource, ...]
    suites: tuple[SuiteRecord, ...] = ()
    measurements: tuple[Measurement, ...] = ()


def open_sources(
    references: Sequence[str],
    results_dir: Path,
    warn: Callable[[str], None] = lambda _: None,
    read: Callable[[Path], Result] = read_own_result,
) -> Sources:
    """Return what the references name: runs, suites, results folders, files of measurements.

    Without references, return what is in ``results_dir``. Raise RunError for a reference that is
    nothing of these. ``warn`` gets a line for every file of a folder that cannot be read. ``read``
    reads the results files of folders.
    """
    found = _Finder(results_dir, warn, read)
    for reference in references or [str(results_dir)]:
        found.add(reference)
    return found.sources()


class _Finder:
    """Collect sources, each once."""

    def __init__(
        self, results_dir: Path, warn: Callable[[str], None], read: Callable[[Path], Result]
    ) -> None:
        self._results_dir, self._warn, self._read = results_dir, warn, read
        self._runs: dict[tuple[str, str, str], RunSource] = {}
        self._suites: dict[str, SuiteRecord] = {}
        self._measurements: dict[str, Measurement] = {}

    def add(self, reference: str) -> None:
        path = Path(reference)
        if path.is_dir() and not _is_run(path):
            self._add_folder(path)
        elif path.is_file() and (found := read_measurement(path)):
            self._measurements.setdefault(found.key, found)
        elif path.is_file() and path.parent.name == FOLDER:
            self._add_suite(read_suite(path), path.parent.parent)
        else:
            self._add_named(reference)

    def sources(self) -> Sources:
        runs = sorted(self._runs.values(), key=lambda run: run.entry.timestamp, reverse=True)
        return Sources(
            tuple(_number(runs)),
            tuple(self._suites.values()),
            tuple(self._measurements.values()),
        )

    def _add_folder(self, folder: Path) -> None:
        results = set()
        for entry in list_runs(folder, self._warn, self._read):
            self._add_run(entry, folder)
            if entry.result is not None:
                results.add(entry.result.path)
        for path in sorted((folder / FOLDER).glob("*.json")):
            try:
                record = read_suite(path)
            except RunError as error:
                self._warn(str(error))
                continue
            self._suites.setdefault(record.suite, record)
        for path in sorted(set(folder.glob("*.json")) - results):
            if not path.is_symlink() and (found := read_measurement(path)):
                self._measurements.setdefault(found.key, found)

    def _add_named(self, reference: str) -> None:
        suite = self._results_dir / FOLDER / f"{reference}.json"
        if suite.is_file():
            self._add_suite(read_suite(suite), self._results_dir)
            return
        for entry in collect_runs([reference], self._results_dir, self._warn):
            place = entry.result.path.parent if entry.result else Path(reference).parent
            self._add_run(entry, place)

    def _add_suite(self, record: SuiteRecord, results_dir: Path) -> None:
        self._suites.setdefault(record.suite, record)
        names = {row.run for row in record.rows if row.run}
        found = {entry.run: entry for entry in list_runs(results_dir, self._warn, self._read)}
        for name in sorted(names - found.keys()):
            raise RunError(
                f"{record.suite}: its run {name} is not in {results_dir}. Restore it from a copy."
            )
        for name in sorted(names):
            self._add_run(found[name], results_dir)

    def _add_run(self, entry: RunEntry, results_dir: Path) -> None:
        folder = results_dir / entry.run
        if entry.result is not None and entry.result.folder.is_dir():
            folder = entry.result.folder
        known = folder if (folder / "run.json").is_file() else None
        key = (entry.run, entry.timestamp, entry.model)
        self._runs.setdefault(key, RunSource(entry.run, entry, known, results_dir))


def _is_run(path: Path) -> bool:
    return (path / "run.json").exists() or (path.parent / f"{path.name}.json").is_file()


def _number(runs: Sequence[RunSource]) -> list[RunSource]:
    """Return the runs with unique keys, which need no quotes in HTML and addresses."""
    seen: dict[str, int] = {}
    found = []
    for run, model in zip(runs, name_runs([run.entry for run in runs]), strict=True):
        name = run.key
        if not SAFE_KEY.fullmatch(name):  # a folder that was renamed
            digest = hashlib.sha256(name.encode("utf-8", "surrogateescape"))
            name = f"run-{digest.hexdigest()[:16]}"
        count = seen[name] = seen.get(name, 0) + 1
        key = name if count == 1 else f"{name}~{count}"
        found.append(replace(run, key=key, model=model))
    return found
