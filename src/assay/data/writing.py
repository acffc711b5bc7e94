"""Write files without following links, leaving partial files or losing data.

A whole file is written under a new name and renamed. Lines are appended only to a regular file
without other names, because a symbolic or hard link would change another file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from typing import TYPE_CHECKING

from assay.data.reading import KINDS, check_regular
from assay.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@contextlib.contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Turn errors of the operating system into one line that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "Free some space and run the same command to resume"
        elif error.errno == errno.ELOOP:
            raise RunError(_refusal(path, "is a symbolic link")) from error
        else:
            advice = "Make it writable, or choose another place (--results-dir, --output)"
        raise RunError(f"{path}: cannot be written ({error.strerror}). {advice}.") from error


def write_whole(
    path: Path, content: str | bytes, mode: int = 0o666, *, durable: bool = True
) -> None:
    """Replace the file in one step. Readers see the old content or the new, never a part.

    Without ``durable`` there is no wait for the disk, and a power failure can lose the content.
    """
    if isinstance(content, str):
        content = content.encode("utf-8", "backslashreplace")  # half of a surrogate pair
    with reporting(path), _fresh(path, mode) as (descriptor, partial):
        write_all(descriptor, content)
        if durable:
            os.fsync(descriptor)
        replace(partial, path)


@contextlib.contextmanager
def _fresh(path: Path, mode: int) -> Iterator[tuple[int, Path]]:
    descriptor, partial = create_beside(path, mode)
    try:
        yield descriptor, partial
    finally:
        os.close(descriptor)
        partial.unlink(missing_ok=True)


def create_beside(path: Path, mode: int = 0o666) -> tuple[int, Path]:
    """Create a file with an unpredictable name in the same folder as ``path``."""
    check_replaceable(path)
    partial = path.with_name(f".{secrets.token_hex(8)}.part")
    return os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE, mode), partial


def replace(partial: Path, path: Path) -> None:
    """Rename ``partial`` to ``path``, unless ``path`` is something other than a file."""
    check_replaceable(path)
    partial.replace(path)


def check_replaceable(path: Path) -> None:
    """Raise RunError if the path is a link, a folder, a pipe or a device."""
    with contextlib.suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode):
            kind = KINDS.get(stat.S_IFMT(mode), "something else")
            raise RunError(_refusal(path, f"is {kind}, not a file"))


def open_private(path: Path, flags: int = 0) -> int:
    """Open or create a file for reading and writing. Raise RunError if it has other names."""
    with reporting(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _SAFE | flags, 0o666)
    status = os.fstat(descriptor)
    try:
        check_regular(status)
        if status.st_nlink > 1:
            raise ValueError(f"has {status.st_nlink} names (hard links)")
    except ValueError as error:
        os.close(descriptor)
        raise RunError(_refusal(path, str(error))) from error
    return descriptor


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def make_folder(path: Path) -> None:
    """Create the folder and its parents. Raise RunError if it is a link or a file."""
    with reporting(path):
        path.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        raise RunError(_refusal(path, "is a symbolic link"))


def _refusal(path: Path, problem: str) -> str:
    return (
        f"{path}: {problem}, and writing to it could change another file. Replace it with a copy, "
        "or choose another place."
    )
