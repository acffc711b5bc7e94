"""All runs of a results folder."""

from __future__ import annotations

import contextlib
import datetime
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.data import codec
from assay.data.documents import read_document
from assay.errors import RunError, UsageError
from assay.protocol import RecordedProtocol
from assay.runs._files import DOCUMENTS
from assay.runs.about import RUN_FILE, RunAbout, read_about
from assay.runs.checks.run_folder import check_folder, read_checked_result
from assay.runs.folder import run_folders
from assay.runs.result import Result
from assay.runs.results import describe_fault, read_result, render_result
from assay.types import ModelIdentity

PROTOCOL_FILE = "protocol.json"
RESULT_NAME = re.compile(r".+_\d{8}_\d{6}(-\d+)?\.json")
DAYS = re.compile(r"(\d{1,5})d")

MOST_NAME = 250  # characters of a file's name, without its ending


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run in the history."""

    run: str
    benchmark: str
    model: str
    timestamp: str
    selection: str  # label of the problems, if they are not the whole benchmark
    model_identity: ModelIdentity | None
    protocol: RecordedProtocol
    result: Result | None = None  # none: the run is not finished

    def to_json(self) -> Any:
        """Return the result without its problems, or what is known about an unfinished run."""
        if self.result is not None:
            return {k: v for k, v in render_result(self.result).items() if k != "problems"}
        return {
            "run": self.run,
            "benchmark": self.benchmark,
            "model": self.model,
            "timestamp": self.timestamp,
            "config": {"problem_selection": self.selection},
            "model_identity": codec.to_json(self.model_identity),
            "protocol": self.protocol.to_json(),
        }


@dataclass(frozen=True, slots=True)
class RunFilter:
    """The runs to list. An empty field admits all."""

    model: str = ""  # a part of its name
    benchmark: str = ""
    since: str = ""  # a day such as 2026-01-31, or ``7d`` for seven days ago

    def __post_init__(self) -> None:
        self.first_day()

    def first_day(self) -> str:
        """Return the earliest day as ISO text, or an empty text. Raise UsageError if not a day."""
        if not self.since:
            return ""
        today = datetime.datetime.now(datetime.UTC).date()
        if match := DAYS.fullmatch(self.since):
            return (today - datetime.timedelta(days=int(match[1]))).isoformat()
        try:
            return datetime.date.fromisoformat(self.since).isoformat()
        except ValueError as error:
            raise UsageError(
                f"--since {self.since}: is not a date. Give one such as {today}, or 7d for seven "
                "days ago."
            ) from error

    def admits(self, entry: RunEntry) -> bool:
        """Return whether to list the run."""
        first = self.first_day()
        return (
            self.model.lower() in entry.model.lower()
            and self.benchmark in ("", entry.benchmark)
            and entry.timestamp[: len(first)] >= first
        )


def read_own_result(path: Path) -> Result:
    """Read a results file of a results folder, where links are not followed."""
    return read_result(path, follow=False)


class ResultCache:
    """The results files of a folder that is listed again and again, read only if they changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, ...], Result]] = {}

    def read(self, path: Path) -> Result:
        """Return a result. Raise RunError if it is not valid."""
        mark = _mark(path)
        mark_before, result = self._known.get(path, ((), None))
        if result is None or not mark or mark != mark_before:
            self._known.pop(path, None)
            result = read_own_result(path)
            self._known[path] = mark, result
        return result

    def forget_others(self, paths: Collection[Path]) -> None:
        """Forget all results but these, such as those of deleted files."""
        self._known = {path: known for path, known in self._known.items() if path in paths}


def _mark(path: Path) -> tuple[int, ...]:
    """Return numbers that differ if a file has changed; none if it is missing."""
    try:
        status = path.lstat()
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def list_runs(
    results_dir: Path,
    warn: Callable[[str], None] = lambda _: None,
    read: Callable[[Path], Result] = read_own_result,
) -> list[RunEntry]:
    """Return all runs, newest first. An unfinished run has no result.

    ``warn`` gets one line for every file that cannot be read. Other runs are still listed. ``read``
    reads a results file, such as that of a ``ResultCache``.
    """
    entries: dict[str, RunEntry] = {}
    for path in results_dir.glob("*.json"):
        if RESULT_NAME.fullmatch(path.name):
            with _warning(warn):
                entries[path.stem] = _finished(read(path))
    for folder, about in run_folders(results_dir, warn, _is_unfinished):
        with _warning(warn):
            entries[folder.name] = _describe(folder, about)
    return sorted(entries.values(), key=lambda entry: entry.timestamp, reverse=True)


def check_runs(runs: Iterable[RunEntry], warn: Callable[[str], None]) -> list[RunEntry]:
    """Return the runs whose results agree with their folders. ``warn`` gets a line for others."""
    checked = []
    for run in runs:
        with _warning(warn):
            if run.result and run.result.folder.is_dir():
                check_folder(run.result, run.result.folder)
            checked.append(run)
    return checked


def _is_unfinished(folder: Path) -> bool:
    # Not Path.exists, which fails for a name that is too long.
    return not os.path.exists(f"{folder}.json")  # noqa: PTH110


@contextlib.contextmanager
def _warning(warn: Callable[[str], None]) -> Iterator[None]:
    try:
        yield
    except RunError as error:
        warn(str(error))


def _finished(result: Result) -> RunEntry:
    return RunEntry(
        result.run, result.benchmark, result.model, result.timestamp,
        result.config.problem_selection, result.model_identity, result.protocol, result,
    )  # fmt: skip


def collect_runs(
    references: Sequence[str], results_dir: Path, warn: Callable[[str], None] = lambda _: None
) -> list[RunEntry]:
    """Return each of the runs once, by results folder, results file, run folder or name.

    Without references, return the runs of ``results_dir``. ``warn`` is as for ``list_runs``. Every
    result is compared with the verdicts of its run.
    """
    entries: dict[tuple[str, str, str], RunEntry] = {}
    for reference in references or [str(results_dir)]:
        for entry in _find_runs(reference, results_dir, warn):
            entries.setdefault((entry.run, entry.timestamp, entry.model), entry)
    return list(entries.values())


def _find_runs(reference: str, results_dir: Path, warn: Callable[[str], None]) -> list[RunEntry]:
    path = Path(reference)
    if len(path.name) > MOST_NAME:
        raise RunError(f"{path.name[:40]}…: the name is too long. Give the path of a folder.")
    is_run = (path / RUN_FILE).exists() or (path.parent / f"{path.name}.json").is_file()
    if path.is_dir() and not is_run:
        return list_runs(path, warn, read_checked_result)
    if path == results_dir:  # which nobody has created yet
        return []
    try:
        return [_finished(find_result(reference, results_dir))]
    except RunError:
        if not (path / RUN_FILE).is_file() or (path.parent / f"{path.name}.json").exists():
            raise
        return [describe_folder(path)]  # not finished


def find_folder(reference: str, results_dir: Path) -> Path:
    """Return the folder of a run, given its folder, its results file or its name."""
    path = Path(reference).absolute()
    for folder in (path, path.with_suffix(""), results_dir / reference):
        if (folder / RUN_FILE).is_file():
            return folder
    raise RunError(
        f"{reference}: is not a run. Give a run's folder, its results file, or a name that "
        "`assay history` lists."
    )


def describe_folder(path: Path) -> RunEntry:
    """Return the history entry of a run's folder. The run may be unfinished."""
    return _describe(path, read_about(path))


def _describe(path: Path, about: RunAbout) -> RunEntry:
    content = DOCUMENTS.read_json(path / PROTOCOL_FILE)
    try:
        protocol = read_document(RecordedProtocol, content)
    except ValueError as error:
        raise RunError(
            f"{path / PROTOCOL_FILE}: {describe_fault(error)}. Restore it from a copy, or delete "
            "the run."
        ) from error
    return RunEntry(
        path.name, protocol.benchmark, about.model.name, about.created, about.selection,
        about.model, protocol,
    )  # fmt: skip


def find_result(reference: str, results_dir: Path) -> Result:
    """Read a result by its file, by its run's folder, or by its name in ``results_dir``.

    Raise RunError if it contradicts itself, or the verdicts of its run.
    """
    return read_checked_result(find_result_file(reference, results_dir), follow=True, texts=True)


def find_run_folder(result: Result, results_dir: Path) -> Path:
    """Return the folder of a result's run, in ``results_dir`` or next to the results file."""
    for folder in (results_dir / result.run, result.folder):
        if folder.is_dir():
            if folder != result.folder:  # which was checked when the result was read
                check_folder(result, folder)
            return folder
    raise UsageError(
        f"{result.run}: the run's folder is not in {results_dir}. It has the programs; give its "
        "location with --results-dir."
    )


def find_result_file(reference: str, results_dir: Path) -> Path:
    """Return a results file, given the file, the run's folder or the run's name."""
    path = Path(reference).absolute()
    candidates = [path, (path.parent / f"{path.name}.json"), results_dir / f"{reference}.json"]
    for candidate in candidates:
        with contextlib.suppress(OSError):  # a name that is too long
            if candidate.is_file():
                return candidate
    raise RunError(
        f"{reference}: no such result. Give a results file, or a name that `assay history` lists."
    )
