"""Count the verdicts of runs that go on, without reading any of them twice."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from assay.report.pages import RunSource

PIECE = 1 << 20
_SAFE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Progress:
    """The number of judged samples of a run, and of all samples if it is known."""

    judged: int
    total: int | None


@dataclass(frozen=True, slots=True)
class _Place:
    inode: int
    offset: int
    lines: int


class Counter:
    """Count the lines of files that grow."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}

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
                return self._continue(str(path), descriptor)
            finally:
                os.close(descriptor)
        return 0

    def _continue(self, name: str, descriptor: int) -> int:
        found = os.fstat(descriptor)
        place = self._places.get(name)
        if place is None or place.inode != found.st_ino or place.offset > found.st_size:
            place = _Place(found.st_ino, 0, 0)
        offset, lines = place.offset, place.lines
        while piece := os.pread(descriptor, PIECE, offset):
            offset += len(piece)
            lines += piece.count(b"\n")
        self._places[name] = _Place(found.st_ino, offset, lines)
        return lines
