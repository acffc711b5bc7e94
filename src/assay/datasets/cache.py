"""The cache folder, and what every way of fetching needs."""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
from pathlib import Path

from assay.errors import DataError


class FetchError(DataError):
    """One source did not give the file; another may. ``failure`` is the message without remedy."""

    def __init__(self, failure: str, remedy: str) -> None:
        super().__init__(f"{failure}: {remedy}")
        self.failure = failure


def cache_dir() -> Path:
    """Return ``ASSAY_CACHE_DIR``, or ``assay`` in the user's cache folder; nobody else's.

    It is created for the user alone. DataError where others could have put something into it.
    """
    path = _cache_path()
    try:
        if not os.path.lexists(path):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A folder that the user names may hold more than a cache: its mode is the user's to choose.
        check_private(path, readable=bool(os.environ.get("ASSAY_CACHE_DIR")))
    except OSError:
        pass  # whoever writes there says why that cannot be done
    return path


def _cache_path() -> Path:
    if given := os.environ.get("ASSAY_CACHE_DIR"):
        return Path(given)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "assay"
    except RuntimeError as error:
        raise DataError("no home folder: set ASSAY_CACHE_DIR to a folder of yours") from error


def check_private(path: Path, *, readable: bool = False) -> None:
    """Raise DataError unless the folder is the user's and no other can write there.

    Unless it is to be ``readable``, nobody else may read it from now on.
    """
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        problem, advice = "is a symbolic link", f"set ASSAY_CACHE_DIR to {os.path.realpath(path)}"
    elif not stat.S_ISDIR(found.st_mode):
        problem, advice = "is not a folder", "move it away, or set ASSAY_CACHE_DIR"
    elif found.st_uid not in (os.geteuid(), 0):
        problem, advice = "belongs to another user", "set ASSAY_CACHE_DIR to a folder of yours"
    elif found.st_mode & 0o022:
        problem = "can be written by other users"
        advice = f"if nobody else put anything there, run chmod 700 {shlex.quote(str(path))}"
    else:
        if found.st_mode & 0o055 and found.st_uid == os.geteuid() and not readable:
            path.chmod(found.st_mode & 0o700)  # read-only stays read-only
        return
    raise DataError(f"cache folder {path}: {problem}. To use a cache, {advice}.")


def offline() -> bool:
    """Whether ``HF_HUB_OFFLINE`` is set, in the spellings the hub's own library takes."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}


def refuse_offline(name: str) -> None:
    """Raise where the user wants no network."""
    if offline():
        raise FetchError(f"HF_HUB_OFFLINE forbids fetching {name}", "unset it to fetch")


def file_sha256(path: Path) -> str:
    """Digest of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: Path, sha256: str, remedy: str) -> None:
    """Raise unless the file has this digest."""
    found = file_sha256(path)
    if found != sha256:
        raise DataError(
            f"{path} is damaged or of another version "
            f"(sha256 {found[:12]}…, expected {sha256[:12]}…): {remedy}"
        )


def unusable(folder: Path, error: OSError) -> DataError:
    """What to say when the disk, not the network, is in the way."""
    return DataError(
        f"cannot use the cache folder {folder}: {error.strerror or error}; "
        "make it writable, make room, or set ASSAY_CACHE_DIR"
    )
