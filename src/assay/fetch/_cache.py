"""The cache folder, and what every way of fetching needs."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from assay.errors import DataError


class FetchError(DataError):
    """One source did not give the file; another may. ``failure`` is the message without remedy."""

    def __init__(self, failure: str, remedy: str) -> None:
        super().__init__(f"{failure}: {remedy}")
        self.failure = failure


def cache_dir() -> Path:
    """``ASSAY_CACHE_DIR``, or ``assay`` in the user's cache folder."""
    if given := os.environ.get("ASSAY_CACHE_DIR"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "assay"


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
