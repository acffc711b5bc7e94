"""Bring model files to nodes: by path where it is shared, otherwise by a verified copy."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from assay.data import codec
from assay.datasets import cache_dir, look_up_sha256
from assay.errors import ModelError

CHUNK = 16 << 20
# Returns a piece of a file of the driver's machine: its path, an offset and a size.
Source = Callable[[str, int, int], bytes]


@dataclass(frozen=True, slots=True)
class ShippedFile:
    """Describe a file: its path inside the shipment, its size and its digest."""

    path: str  # empty: the shipment is this file
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Shipment:
    """Describe a file or folder of the driver's machine."""

    root: str
    files: tuple[ShippedFile, ...]

    @property
    def digest(self) -> str:
        return codec.digest([[one.path, one.size, one.sha256] for one in self.files])


def describe_files(root: Path) -> Shipment:
    """Return the content of a file or folder, without hidden files."""
    root = root.resolve()
    if root.is_file():
        return Shipment(str(root), (_describe("", root),))
    found = []
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        if path.is_file() and not any(part.startswith(".") for part in inside.parts):
            found.append(_describe(str(inside), path))
    return Shipment(str(root), tuple(found))


def _describe(name: str, path: Path) -> ShippedFile:
    return ShippedFile(name, path.stat().st_size, look_up_sha256(path))


def has_same(root: Path, shipment: Shipment) -> bool:
    """Return whether a path has the shipment's files with the same sizes and digests."""
    try:
        pairs = [(root / one.path if one.path else root, one) for one in shipment.files]
        sizes = all(path.is_file() and path.stat().st_size == one.size for path, one in pairs)
        return sizes and all(look_up_sha256(path) == one.sha256 for path, one in pairs)
    except OSError:
        return False


def locate(shipment: Shipment, source: Source | None) -> Path:
    """Return where this node has the files: at the same path, or copied to its cache."""
    root = Path(shipment.root)
    if has_same(root, shipment):
        return root
    folder = cache_dir() / "cluster" / shipment.digest
    copy = folder / root.name
    with _alone(folder):  # engines of one node copy once
        if has_same(copy, shipment):
            return copy
        if source is None:
            raise ModelError(
                f"{root}: is missing or different on node {os.uname().nodename}. Share the folder, "
                "or copy it there."
            )
        for one in shipment.files:
            target = copy / one.path if one.path else copy
            _copy(source, str(root / one.path if one.path else root), target, one)
    return copy


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a lock of this node on a folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _copy(source: Source, there: str, target: Path, about: ShippedFile) -> None:
    """Copy one file in pieces. A copy with another digest is removed and reported."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    digest = hashlib.sha256()
    with part.open("wb") as file:
        for offset in range(0, about.size, CHUNK):
            piece = source(there, offset, min(CHUNK, about.size - offset))
            digest.update(piece)
            file.write(piece)
    if digest.hexdigest() != about.sha256:
        part.unlink()
        raise ModelError(f"{there}: changed while it was copied. Run the same command again.")
    part.replace(target)
