"""Read untrusted files: only regular files, and never more than a limit.

Every command reads a user's files through this module. Nothing blocks (pipes, devices), and nothing
is opened for writing. Every problem becomes one line: the file, the problem, and what to do.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import math
import os
import re
import stat
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Protocol

from assay.errors import AssayError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_DEPTH = 100  # of JSON; our own data has less than 10
MOST_DIGITS = 19  # of a whole number: counts, seeds and times have fewer
MOST_LINE = 1 << 27
MOST_LINES = 10_000_000
# A compressed file may be this many times larger when it is unpacked. The most repetitive benchmark
# file (HumanEval's multi-line infilling) has a ratio of 62, a decompression bomb 1,000.
MOST_RATIO = 200
RATIO_FROM = 1 << 26  # bytes: smaller content is harmless, whatever its ratio
GZIP = b"\x1f\x8b"
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a symbolic link",
}
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\Z)', re.DOTALL)
_NO_BRACKET = re.compile(r"[^\[\]{}]++")


class _ErrorType(Protocol):
    def __call__(self, message: str, /) -> AssayError: ...


def check_regular(status: os.stat_result) -> None:
    """Raise ValueError unless this is a regular file."""
    if not stat.S_ISREG(status.st_mode):
        kind = KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise ValueError(f"is {kind}, not a file")


def open_regular(path: Path, *, follow: bool = True) -> IO[bytes]:
    """Open a regular file for reading. Raise OSError or ValueError for anything else.

    The type is checked before opening, because opening a device can have effects. It is checked
    again afterwards, because the file may have been replaced.
    """
    check_regular(path.stat(follow_symlinks=follow))
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    file = os.fdopen(os.open(path, flags if follow else flags | os.O_NOFOLLOW), "rb")
    try:
        check_regular(os.fstat(file.fileno()))
    except ValueError:
        file.close()
        raise
    return file


class _Bounded(io.RawIOBase):
    """A file that counts what is read, and raises ValueError if it is too much."""

    def __init__(self, packed: IO[bytes], content: IO[bytes], most: int) -> None:
        self._packed, self._content, self._most = packed, content, most
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        piece = self._content.read(len(buffer))
        buffer[: len(piece)] = piece
        self._count += len(piece)
        if self._count > self._most:
            raise ValueError(f"is larger than {_size(self._most)}")
        is_packed = self._packed is not self._content
        if is_packed and self._count > max(RATIO_FROM, MOST_RATIO * self._packed.tell()):
            raise ValueError(f"unpacks to more than {MOST_RATIO} times its size")
        return len(piece)

    def close(self) -> None:
        self._content.close()
        self._packed.close()
        super().close()


def open_bounded(path: Path, most: int, *, follow: bool = True, unpack: bool = True) -> IO[bytes]:
    """Open a regular file, unpacked if it is gzipped. Reading raises ValueError beyond ``most``."""
    file = open_regular(path, follow=follow)
    if os.fstat(file.fileno()).st_size > most:
        file.close()
        raise ValueError(f"is larger than {_size(most)}")
    try:
        is_packed = unpack and file.read(len(GZIP)) == GZIP
        file.seek(0)
    except OSError:  # such as of /proc/self/mem
        file.close()
        raise
    content = gzip.GzipFile(fileobj=file, mode="rb") if is_packed else file
    return io.BufferedReader(_Bounded(file, content, most), 1 << 16)  # type: ignore[arg-type]


def parse_json(text: str | bytes, *, any_number: bool = False, unambiguous: bool = False) -> Any:
    """Parse JSON. Raise ValueError if it is not valid, or too deep, too large or ambiguous.

    ``any_number`` accepts integers of any size and infinite floats, as Python does, and fields that
    are there twice unless ``unambiguous`` is true. The names NaN and Infinity are always accepted,
    because engines report them as log-probabilities.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig")
    _check_depth(text)
    try:
        if any_number:
            return json.loads(text, object_pairs_hook=_unambiguous if unambiguous else None)
        return json.loads(
            text, parse_int=_integer, parse_float=_float, object_pairs_hook=_unambiguous
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else ""
        raise ValueError(
            f"not valid JSON ({error.msg}, {place or f'column {error.colno}'})"
        ) from error
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def _check_depth(text: str) -> None:
    """Raise ValueError for nesting that is too deep for recursive functions."""
    if text.count("[") + text.count("{") <= MOST_DEPTH:
        return
    depth = 0
    for bracket in _NO_BRACKET.sub("", _STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MOST_DEPTH:
            raise ValueError(f"is nested more than {MOST_DEPTH} levels deep")


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > MOST_DIGITS:
        raise ValueError(f"has a number of {len(text)} digits")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("has a number that is too large")
    return value


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"has the field {twice[:40]!r} twice")
    return fields


@dataclass(frozen=True, slots=True)
class FileReader:
    """A reader of files of one kind, with an error type, advice and limits.

    ``follow`` links only for paths that the user named, not inside a folder from someone else.
    """

    error: _ErrorType
    advice: str  # a sentence without its period
    most: int = 1 << 26
    follow: bool = True
    unpack: bool = True  # whether to decompress gzip files
    most_line: int = MOST_LINE

    def read_bytes(self, path: Path) -> bytes:
        """Return the content of a file, unpacked if it is gzipped."""
        with self.reporting(path), self._open(path) as file:
            return file.read()

    def read_text(self, path: Path) -> str:
        """Return the content of a UTF-8 file."""
        with self.reporting(path):
            return self.read_bytes(path).decode()

    def read_json(self, path: Path, *, any_number: bool = False) -> Any:
        """Return the data of a JSON file. ``any_number`` is that of ``parse_json``."""
        with self.reporting(path):
            return parse_json(self.read_bytes(path), any_number=any_number)

    def lines(self, path: Path) -> Iterator[bytes]:
        """Yield the lines with their ends, one at a time."""
        with self.reporting(path), self._open(path) as file:
            number = 0
            while line := file.readline(self.most_line + 1):
                number += 1
                if len(line) > self.most_line:
                    raise ValueError(f"line {number} is longer than {_size(self.most_line)}")
                if number > MOST_LINES:
                    raise ValueError(f"has more than {MOST_LINES:,} lines")
                yield line

    def _open(self, path: Path) -> IO[bytes]:
        return open_bounded(path, self.most, follow=self.follow, unpack=self.unpack)

    @contextlib.contextmanager
    def reporting(self, path: object) -> Iterator[None]:
        """Turn every error of reading into an error of one line."""
        try:
            yield
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise self._refusal(path, f"is damaged or cut short ({error})") from error
        except UnicodeDecodeError as error:
            raise self._refusal(path, f"is not UTF-8 (byte {error.start})") from error
        except FileNotFoundError as error:
            raise self._refusal(path, "no such file") from error
        except OSError as error:
            raise self._refusal(path, error.strerror or str(error)) from error
        except MemoryError as error:
            raise self._refusal(path, "is too large for this machine's memory") from error
        except (ValueError, RecursionError) as error:
            raise self._refusal(path, str(error)) from error

    def _refusal(self, path: object, problem: str) -> AssayError:
        return self.error(f"{path}: {problem}. {self.advice}.")


def _size(count: int) -> str:
    for unit, bits in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << bits:
            return f"{count / (1 << bits):g} {unit}"
    return f"{count} bytes"
