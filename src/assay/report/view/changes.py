"""Notice which runs of a results folder change, from the sizes and times of their files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

Mark = tuple[int, int, int]  # inode, size, time of the last change
# Files of a run that grow while it goes on.
GROWING = ("run.json", "completions.jsonl", "programs.jsonl", "verdicts.jsonl")


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
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        return list(found)
    return []


def _mark(path: str) -> Mark | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
