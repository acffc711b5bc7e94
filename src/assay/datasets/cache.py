"""Provide the cache folder, and helpers for every way of downloading."""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
from pathlib import Path

from assay.errors import DataError


class FetchError(DataError):
    """A failure of one source of a file; another may have it. ``failure`` lacks the remedy."""

    def __init__(self, failure: str, remedy: str) -> None:
        super().__init__(f"{failure}. {remedy}.")
        self.failure = failure


def cache_dir() -> Path:
    """Return ``ASSAY_CACHE_DIR``, or ``assay`` in the user's cache folder.

    It is created for the user alone. Raise DataError if others could have written to it.
    """
    path = _cache_path()
    try:
        if not os.path.lexists(path):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A folder that the user names may hold more than a cache: its mode is the user's choice.
        check_private(path, readable=bool(os.environ.get("ASSAY_CACHE_DIR")))
    except OSError:
        pass  # a later write reports the reason
    return path


def _cache_path() -> Path:
    if given := os.environ.get("ASSAY_CACHE_DIR"):
        return Path(given)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "assay"
    except RuntimeError as error:
        raise DataError(
            "cache folder: this user has no home folder. Set ASSAY_CACHE_DIR to a folder that you "
            "own."
        ) from error


def check_private(path: Path, *, readable: bool = False) -> None:
    """Raise DataError unless the folder belongs to the user and no other can write to it.

    Unless it is to be ``readable``, make it unreadable for others.
    """
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        problem, advice = "is a symbolic link", f"set ASSAY_CACHE_DIR to {os.path.realpath(path)}"
    elif not stat.S_ISDIR(found.st_mode):
        problem, advice = "is not a folder", "move it away, or set ASSAY_CACHE_DIR"
    elif found.st_uid not in (os.geteuid(), 0):
        problem, advice = "belongs to another user", "set ASSAY_CACHE_DIR to a folder that you own"
    elif found.st_mode & 0o022:
        problem = "can be written by other users"
        advice = f"check its content, then run chmod 700 {shlex.quote(str(path))}"
    else:
        if found.st_mode & 0o055 and found.st_uid == os.geteuid() and not readable:
            path.chmod(found.st_mode & 0o700)  # read-only stays read-only
        return
    raise DataError(f"cache folder {path}: {problem}. To use a cache, {advice}.")


def offline() -> bool:
    """Return whether ``HF_HUB_OFFLINE`` is set, in the spellings that the hub's library accepts."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}


def refuse_offline(name: str) -> None:
    """Raise FetchError if the user allows no network."""
    if offline():
        raise FetchError(
            f"HF_HUB_OFFLINE forbids the download of {name}", "Unset it to download the file"
        )


def file_sha256(path: Path) -> str:
    """Return the digest of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: Path, sha256: str, remedy: str) -> None:
    """Raise DataError unless the file has this digest."""
    found = file_sha256(path)
    if found != sha256:
        raise DataError(
            f"{path}: is damaged or another version "
            f"(sha256 {found[:12]}…, expected {sha256[:12]}…). {remedy}."
        )


def unusable(folder: Path, error: OSError) -> DataError:
    """Return the error for a disk problem, as opposed to a network problem."""
    return DataError(
        f"cache folder {folder}: cannot be used ({error.strerror or error}). "
        "Make it writable, free some space, or set ASSAY_CACHE_DIR."
    )
