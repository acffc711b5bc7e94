"""Files that survive a kill: whole lines appended, whole files swapped in."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from typing import TYPE_CHECKING, Any, TypeVar

from assay import codec
from assay.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

T = TypeVar("T")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns the system's refusals into one line that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "free some space and run the same command again, what was written is kept"
        else:
            advice = "make it writable or choose another place (--results-dir, --output)"
        raise RunError(f"cannot write {path}: {error.strerror}; {advice}") from error


def write_whole(path: Path, text: str) -> None:
    """Replace the file in one step: readers see the old text or the new, never a part."""
    partial = path.with_name(path.name + ".part")
    with writing(path):
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunError(f"no file {path}") from error
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}): delete it or restore it") from error


def hold(path: Path, busy: str) -> int:
    """A lock on the file, made if need be, until it is closed; RunError(busy) if another has it."""
    while True:
        with writing(path):
            held = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(held)
            raise RunError(busy) from error
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(held), path.stat()):
                return held
        os.close(held)  # replaced between the two steps: the lock must be on what is there now


def add_environment(path: Path, about: dict[str, Any], environment: dict[str, Any]) -> None:
    """Write down, once, where a run is worked on, in the file that says what it is about."""
    environment = json.loads(codec.dumps(environment))  # as it will be read again
    if environment not in about["environments"]:
        about["environments"] = [*about["environments"], environment]
        write_whole(path, codec.pretty(about))


class JsonLines:
    """An append-only file of one dataclass, a record a line."""

    def __init__(self, path: Path, record_type: type[T]) -> None:
        self._path = path
        self._type = record_type
        with writing(path):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)

    def read(self) -> list[Any]:
        return list(self.records())

    def records(self) -> Iterator[Any]:
        """All records, one at a time.

        A last line without its end is what a kill leaves: it is cut off here.
        """
        with self._path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    with writing(self._path):
                        os.truncate(self._file, os.fstat(self._file).st_size - len(line))
                    return
                yield self._record(number, line)

    def stream(self) -> Iterator[Any]:
        """All records, one in memory at a time; they were read before, so that lines are whole."""
        with self._path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                yield self._record(number, line)

    def append(self, record: Any) -> None:
        """Written through to the system before this returns; a part of a line is taken back."""
        line = codec.dumps(record).encode() + b"\n"
        with writing(self._path):
            before = os.fstat(self._file).st_size
            try:
                written = 0
                while written < len(line):
                    written += os.write(self._file, line[written:])
            except OSError:
                os.truncate(self._file, before)
                raise

    def close(self) -> None:
        os.close(self._file)

    def _record(self, number: int, line: bytes) -> Any:
        try:
            return codec.from_json(self._type, json.loads(line))
        except ValueError as error:
            raise RunError(
                f"{self._path} line {number} is damaged ({error}): delete that line to have its "
                "sample made again, or start over with --fresh"
            ) from error
