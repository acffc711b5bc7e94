"""Write files of a run so that they survive a kill: append whole lines, replace whole files."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING, Any, TypeVar

from assay.data import codec, writing
from assay.data.reading import FileReader, parse_json
from assay.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")
TAIL = 1 << 16
# A run's folder may come from someone else, so no link in it is followed.
DOCUMENTS = FileReader(RunError, "Restore it from a copy, or delete it", follow=False, unpack=False)
LINES = FileReader(
    RunError, "Restore it from a copy, or start over with --fresh", 1 << 36, follow=False,
    unpack=False,
)  # fmt: skip


def hold(path: Path, busy: str) -> int:
    """Lock the file until it is closed, and create it if needed. Raise RunError(busy) if locked."""
    while True:
        held = writing.open_private(path)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(held)
            raise RunError(busy) from error
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(held), path.lstat()):
                return held
        os.close(held)  # replaced between the two steps: the new file must be locked


def read_records(
    path: Path, record_type: type[T], cut_off: Callable[[int], None] = lambda _: None
) -> Iterator[T]:
    """Yield the records of a JSONL file, one at a time, without a last line that has no end.

    A kill can leave such a line. ``cut_off`` gets its length.
    """
    for number, line in enumerate(LINES.lines(path), 1):
        if line.endswith(b"\n"):
            yield _record(path, number, line, record_type)
        else:
            cut_off(len(line))


def encode_line(record: object) -> str:
    """Return a record as a line of a JSONL file."""
    return f"{codec.dumps(record)}\n"


class JsonLines:
    """An append-only file of one dataclass, a record per line."""

    def __init__(self, path: Path, record_type: type[Any]) -> None:
        self._path = path
        self._type = record_type
        self._file = writing.open_private(path, os.O_APPEND)

    def records(self) -> Iterator[Any]:
        """Yield all records. A last line without its end is cut off here."""
        return read_records(self._path, self._type, self._cut_off)

    def _cut_off(self, length: int) -> None:
        with writing.reporting(self._path):
            os.truncate(self._file, os.fstat(self._file).st_size - length)

    def cut_off_half_a_line(self) -> None:
        """Cut off a last line without its end, without reading the whole file."""
        with writing.reporting(self._path):
            size = end = os.fstat(self._file).st_size
            with self._path.open("rb") as file:
                while end:
                    start = max(0, end - TAIL)
                    file.seek(start)
                    piece = file.read(end - start)
                    if (position := piece.rfind(b"\n")) >= 0:
                        end = start + position + 1
                        break
                    end = start
            if end < size:
                os.truncate(self._file, end)

    def append(self, lines: str) -> None:
        """Write whole lines before returning. Remove lines that were written in part."""
        if not lines:
            return
        with writing.reporting(self._path):
            before = os.fstat(self._file).st_size
            try:
                writing.write_all(self._file, lines.encode())
            except OSError:
                os.truncate(self._file, before)
                raise

    def close(self) -> None:
        os.close(self._file)


def _check_groups(groups: dict[str, tuple[int, ...]]) -> None:
    """Raise ValueError unless each group has two counts: passed tests and all tests."""
    for counts in groups.values():
        if len(counts) != 2 or not 0 <= counts[0] <= counts[1]:
            raise ValueError(f"field 'groups' has an unexpected value {counts!r}")


def _record(path: Path, number: int, line: bytes, record_type: type[T]) -> T:
    try:
        record = codec.from_json(record_type, parse_json(line))
        codec.check_numbers(record)
        _check_groups(getattr(record, "groups", {}))
    except ValueError as error:
        raise RunError(
            f"{path} line {number}: damaged ({error}). Delete the line to generate its sample "
            "again, or start over with --fresh."
        ) from error
    return record
