"""Bring model files to nodes: by path where it is shared, otherwise by a verified copy."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.data import codec
from assay.datasets import cache_dir, look_up_sha256
from assay.errors import ModelError

CHUNK = 16 << 20
CHUNKS_HELD = 32  # pieces of files that stay in the object store for other nodes
# Returns a piece of a file of the driver's machine: its path, an offset and a size.
Source = Callable[[str, int, int], bytes]


@dataclass(frozen=True, slots=True)
class ShippedFile:
    """A file: its path inside the shipment, its size and its digest."""

    path: str  # empty: the shipment is this file
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Shipment:
    """A file or folder of the driver's machine."""

    root: str
    files: tuple[ShippedFile, ...]

    @property
    def digest(self) -> str:
        return codec.digest([[one.path, one.size, one.sha256] for one in self.files])

    @property
    def paths(self) -> list[str]:
        """Return the paths of the files on the driver's machine."""
        return [str(Path(self.root, one.path)) if one.path else self.root for one in self.files]


def describe_files(root: Path) -> Shipment:
    """Return the content of a file or folder, without hidden files."""
    root = root.resolve()
    if root.is_file():
        return Shipment(str(root), (_describe("", root),))
    files = []
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        if path.is_file() and not any(part.startswith(".") for part in inside.parts):
            files.append(_describe(str(inside), path))
    return Shipment(str(root), tuple(files))


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


class FileSource:
    """The driver's files, for nodes that do not have them. An actor on the driver's node."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._held: OrderedDict[tuple[str, int], Any] = OrderedDict()

    def allow(self, paths: list[str]) -> None:
        """Let nodes read these files too."""
        self._paths.update(paths)

    def read(self, path: str, offset: int, size: int) -> list[Any]:
        """Return a reference to a piece of a file, so that nodes also copy from each other."""
        import ray

        if path not in self._paths or size > CHUNK:
            raise PermissionError(path)
        key = path, offset
        if key not in self._held:
            with Path(path).open("rb") as file:
                file.seek(offset)
                self._held[key] = ray.put(file.read(size))
            while len(self._held) > CHUNKS_HELD:
                self._held.popitem(last=False)
        return [self._held[key]]

    def close(self) -> None:
        self._held.clear()


def read_from(source: Any) -> Source:
    """Return a function that reads from a FileSource."""
    import ray

    def read(path: str, offset: int, size: int) -> bytes:
        (reference,) = ray.get(source.read.remote(path, offset, size))
        content: bytes = ray.get(reference)
        return content

    return read
