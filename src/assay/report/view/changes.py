"""Notice which runs of a results folder change, and how far they are, from their files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.report.pages import RunSource

Mark = tuple[int, int, int]  # inode, size, time of the last change
# Files of a run that grow while it goes on.
GROWING = ("run.json", "completions.jsonl", "programs.jsonl", "verdicts.jsonl")
PIECE = 1 << 20
_SAFE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The marks of a results folder at one moment."""

    documents: Mapping[str, Mark]  # results and measurements, by file name
    runs: Mapping[str, tuple[Mark | None, ...]]  # files of runs, by folder name
    suites: Mapping[str, Mark]

    def same_list(self, other: Snapshot) -> bool:
        """Return whether both have the same runs, results, suites and measurements."""
        return (
            self.documents == other.documents
            and self.runs.keys() == other.runs.keys()
            and self.suites == other.suites
        )

    def changed(self, other: Snapshot) -> list[str]:
        """Return the names of the runs whose files differ from an earlier snapshot."""
        results = {name.removesuffix(".json") for name in self.documents}
        return [
            name for name in results | self.runs.keys() if self.mark_of(name) != other.mark_of(name)
        ]

    def mark_of(self, name: str) -> tuple[object, ...]:
        """Return what differs between two moments if a run or its result has changed."""
        return self.documents.get(f"{name}.json"), self.runs.get(name)


def take_snapshot(results: Path) -> Snapshot:
    """Return the marks of all files that pages are made of. Links are not followed."""
    documents: dict[str, Mark] = {}
    runs: dict[str, tuple[Mark | None, ...]] = {}
    for entry in _scan(results):
        if entry.name.endswith(".json") and (mark := _mark(entry.path)):
            documents[entry.name] = mark
        elif entry.is_dir(follow_symlinks=False):
            marks = tuple(_mark(f"{entry.path}/{name}") for name in GROWING)
            if marks[0] is not None:
                runs[entry.name] = marks
    suites = {
        entry.name: mark
        for entry in _scan(results / "suites")
        if entry.name.endswith(".json") and (mark := _mark(entry.path))
    }
    return Snapshot(documents, runs, suites)


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _mark(path: str) -> Mark | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


@dataclass(frozen=True, slots=True)
class Progress:
    """The number of judged samples of a run, and of all samples if it is known."""

    judged: int
    total: int | None


class Counter:
    """The numbers of lines of files that grow. None of them is read twice."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[int, int, int]] = {}  # inode, offset and lines before it

    def measure(self, run: RunSource) -> Progress | None:
        """Return the progress of a run, or None if it is finished or its folder is missing."""
        if run.folder is None or run.entry.result is not None:
            return None
        lines = self._count(run.folder / "verdicts.jsonl")
        protocol = run.entry.protocol
        total = protocol.problems * protocol.n_samples if protocol.problems else None
        # A sample that could not be judged has another line after it is judged again.
        return Progress(lines if total is None else min(lines, total), total)

    def _count(self, path: Path) -> int:
        with contextlib.suppress(OSError):
            descriptor = os.open(path, _SAFE)
            try:
                return self._resume(str(path), descriptor)
            finally:
                os.close(descriptor)
        return 0

    def _resume(self, name: str, descriptor: int) -> int:
        status = os.fstat(descriptor)
        inode, offset, lines = self._places.get(name, (0, 0, 0))
        if inode != status.st_ino or offset > status.st_size:  # another file
            offset = lines = 0
        while piece := os.pread(descriptor, PIECE, offset):
            offset += len(piece)
            lines += piece.count(b"\n")
        self._places[name] = status.st_ino, offset, lines
        return lines
