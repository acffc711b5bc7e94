"""Find a benchmark's data: the user's files, the cache, a package, a download."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from assay import codec
from assay.datasets import (
    FetchError,
    PackagedFile,
    RemoteFile,
    cache_dir,
    download,
    installed_file,
    offline,
    packaged_file,
    packaged_path,
)
from assay.datasets.records import HOW_TO_READ_PARQUET, can_read_parquet, checked
from assay.errors import DataError
from assay.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.progress import Announce

T = TypeVar("T")
FOLDER_VARIABLE = "ASSAY_DATA_DIR"
BLANK_LINE = " \n"  # as WikiText has it; records have nothing in its place
DELETE = "delete it to have it fetched again"


@dataclass(frozen=True, slots=True)
class DataFile:
    """One version of one file, and where it can be had.

    ``path`` is its place below a data folder. ``sha256`` is the digest of the file that upstream
    released: ``urls`` and the package give these bytes, and protocols record it. Copies in other
    forms are known by ``records_sha256``, the digest of the records themselves. ``also_named_by``
    are environment variables by which users of other harnesses name it.
    """

    name: str
    path: str
    version: str
    licence: str
    records: int
    sha256: str
    records_sha256: str
    urls: tuple[str, ...] = ()
    size: int = 0  # of what the urls give, in bytes; 0: not known
    packaged: PackagedFile | None = None
    also_named_by: tuple[str, ...] = ()
    is_text: bool = False  # its records are the lines of a text, which its digest is of

    @property
    def variable(self) -> str:
        return f"ASSAY_{self.name.upper().replace('-', '_')}_PATH"


@dataclass(frozen=True, slots=True)
class Place:
    """Record the place of a file, and the advice if it is the wrong one."""

    path: Path
    remedy: str


data_files: Registry[DataFile] = Registry("data file", "assay.benchmarks")


def pin(declared: DataFile) -> DataFile:
    """Declare a data file, so that ``assay data`` knows it."""
    return data_files.register(declared.name)(declared)


def records(
    wanted: DataFile, announce: Announce = lambda _: None, data_dir: Path | None = None
) -> list[dict[str, Any]]:
    """Return the pinned records, found (in ``data_dir`` first) or fetched, and verified."""
    place = find(wanted, data_dir) or _fetched(wanted, announce)
    return checked(place.path, wanted, place.remedy)


def read_records(
    kind: type[T],
    wanted: DataFile,
    announce: Announce = lambda _: None,
    data_dir: Path | None = None,
) -> list[T]:
    """Return the pinned records as a dataclass of the fields that a benchmark needs."""
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    found = records(wanted, announce, data_dir)
    return [codec.from_json(kind, {n: r[n] for n in names if n in r}) for r in found]


def text(
    wanted: DataFile, announce: Announce = lambda _: None, data_dir: Path | None = None
) -> str:
    """Return the content of a text data file."""
    return "".join(record["text"] or BLANK_LINE for record in records(wanted, announce, data_dir))


def locate(
    wanted: DataFile, announce: Announce = lambda _: None, data_dir: Path | None = None
) -> Path:
    """Return the verified file, found (in ``data_dir`` first) or fetched."""
    place = find(wanted, data_dir) or _fetched(wanted, announce)
    verify(wanted, place)
    return place.path


def verify(wanted: DataFile, place: Place) -> None:
    """Raise unless the file there holds the pinned records."""
    checked(place.path, wanted, place.remedy)


def find(wanted: DataFile, data_dir: Path | None = None) -> Place | None:
    """Return the first place on this machine that has the file; fetch and verify nothing.

    ``data_dir`` takes the place of the folder in ``ASSAY_DATA_DIR``.
    """
    return next((place for place in _places(wanted, data_dir) if place.path.is_file()), None)


def _places(wanted: DataFile, data_dir: Path | None) -> Iterator[Place]:
    if folder := data_dir or os.environ.get(FOLDER_VARIABLE):
        for path in _with_and_without_gz(Path(folder, wanted.path)):
            yield Place(path, f"replace it, or give no --data ({FOLDER_VARIABLE}) to fetch it")
    for variable in (wanted.variable, *wanted.also_named_by):
        if given := os.environ.get(variable):
            if not Path(given).is_file():
                raise DataError(f"{variable} names {given}, which is no file: correct or unset it")
            yield Place(Path(given), f"correct or unset {variable}")
    released = [_in_cache(wanted, source) for source in _remote(wanted)]
    for path in (*_with_and_without_gz(_in_cache(wanted)), *released):
        yield Place(path, DELETE)
    if wanted.packaged and (installed := installed_file(wanted.packaged)):
        yield Place(installed, f"reinstall {wanted.packaged.package}")


def _with_and_without_gz(path: Path) -> tuple[Path, Path]:
    return path, path.with_name(path.name.removesuffix(".gz"))


def _remote(wanted: DataFile) -> list[RemoteFile]:
    """A text comes in other wrappings; its lines are verified."""
    digest = "" if wanted.is_text else wanted.sha256
    return [RemoteFile(url, digest, wanted.size) for url in wanted.urls]


def _sources(wanted: DataFile) -> list[PackagedFile | RemoteFile]:
    return [*([wanted.packaged] if wanted.packaged else []), *_remote(wanted)]


def _in_cache(wanted: DataFile, source: RemoteFile | None = None) -> Path:
    if wanted.packaged:
        return packaged_path(wanted.packaged)
    name = source.name if source else Path(wanted.path).name
    return cache_dir() / f"{wanted.name}-{wanted.version}" / name


def _fetched(wanted: DataFile, announce: Announce) -> Place:
    failures = ["HF_HUB_OFFLINE is set"] if offline() else []
    for source in [] if offline() else _sources(wanted):
        if failures:
            announce(f"{failures[-1]}; trying the next source")
        try:
            return Place(_fetch(source, wanted, announce), DELETE)
        except FetchError as error:
            failures.append(error.failure)
    reason = "; ".join(failures) or "no source of it is known"
    origin = next(iter(wanted.urls), "the file")
    raise DataError(
        f"{wanted.name} {wanted.version} is not here ({reason}): put {origin} at "
        f"{_in_cache(wanted)}, or as {wanted.path} into a folder for --data"
    )


def _fetch(source: PackagedFile | RemoteFile, wanted: DataFile, announce: Announce) -> Path:
    if isinstance(source, PackagedFile):
        return packaged_file(source, announce)
    if source.name.endswith(".parquet") and not can_read_parquet():
        raise FetchError(
            f"{source.host} has it as parquet, {HOW_TO_READ_PARQUET}", "or get it elsewhere"
        )
    return download(source, _in_cache(wanted, source), announce)
