"""Find a benchmark's data (the user's files, the cache, a package, a download) and its state."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from assay.data import codec
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
from assay.datasets.records import (
    HOW_TO_READ_PARQUET,
    can_read_parquet,
    is_released_file,
    read_verified,
)
from assay.errors import DataError
from assay.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from assay.progress import Announce

T = TypeVar("T")
FOLDER_VARIABLE = "ASSAY_DATA_DIR"
BLANK_LINE = " \n"  # in WikiText; records have an empty text instead
DELETE = "Delete it to download it again"


@dataclass(frozen=True, slots=True)
class DataFile:
    """One version of one file, and its sources.

    ``path`` is its place below a data folder. ``sha256`` is the digest of the file that upstream
    released: ``urls`` and the package provide these bytes, and protocols record it. Copies in other
    forms are recognised by ``records_sha256``, the digest of the records themselves.
    ``also_named_by`` are environment variables by which users of other harnesses name it.
    """

    name: str
    path: str
    version: str
    licence: str
    records: int
    sha256: str
    records_sha256: str
    urls: tuple[str, ...] = ()
    size: int = 0  # of the file at the urls, in bytes; 0: not known
    packaged: PackagedFile | None = None
    also_named_by: tuple[str, ...] = ()
    origin: str = ""  # where users get it, if no address has exactly this file
    is_text: bool = False  # its records are the lines of a text, which the digest covers

    @property
    def variable(self) -> str:
        return f"ASSAY_{self.name.upper().replace('-', '_')}_PATH"


@dataclass(frozen=True, slots=True)
class FilePlace:
    """The path of a file, and what to do if it is the wrong file."""

    path: Path
    remedy: str


@dataclass(frozen=True, slots=True)
class DataState:
    """A data file, whether it is on this machine, and where."""

    file: DataFile
    state: Literal["ok", "damaged", "not here", "not verified"]
    path: str | None = None
    detail: str = ""  # what is wrong


data_files: Registry[DataFile] = Registry("data file", "assay.benchmarks")


def pin(declared: DataFile) -> DataFile:
    """Declare a data file, so that ``assay data`` lists it."""
    return data_files.register(declared.name)(declared)


def records(
    wanted: DataFile, announce: Announce = lambda _: None, data_dir: Path | None = None
) -> list[dict[str, Any]]:
    """Return the pinned records, found (first in ``data_dir``) or downloaded, and verified."""
    place = find(wanted, data_dir) or _fetch_first(wanted, announce)
    return read_verified(place.path, wanted, place.remedy)


def read_records(
    kind: type[T],
    wanted: DataFile,
    announce: Announce = lambda _: None,
    data_dir: Path | None = None,
) -> list[T]:
    """Return the pinned records as a dataclass with the fields that a benchmark needs."""
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
    """Return the verified file, found (first in ``data_dir``) or downloaded."""
    place = find(wanted, data_dir) or _fetch_first(wanted, announce)
    verify(wanted, place)
    return place.path


def verify(wanted: DataFile, place: FilePlace) -> None:
    """Raise DataError unless the file there has the pinned records."""
    read_verified(place.path, wanted, place.remedy)


def find(wanted: DataFile, data_dir: Path | None = None) -> FilePlace | None:
    """Return the first place on this machine that has the file. Download and verify nothing.

    ``data_dir`` replaces the folder in ``ASSAY_DATA_DIR``.
    """
    return next((place for place in _places(wanted, data_dir) if place.path.is_file()), None)


def _places(wanted: DataFile, data_dir: Path | None) -> Iterator[FilePlace]:
    if folder := data_dir or os.environ.get(FOLDER_VARIABLE):
        for path in _with_and_without_gz(Path(folder, wanted.path)):
            yield FilePlace(path, f"Replace it, or drop --data ({FOLDER_VARIABLE}) to download it")
    for variable in (wanted.variable, *wanted.also_named_by):
        if given := os.environ.get(variable):
            if not Path(given).is_file():
                raise DataError(f"{variable}: {given} is not a file. Correct or unset it.")
            yield FilePlace(Path(given), f"Correct or unset {variable}")
    released = [_in_cache(wanted, source) for source in _remote(wanted)]
    for path in (*_with_and_without_gz(_in_cache(wanted)), *released):
        yield FilePlace(path, DELETE)
    if wanted.packaged and (installed := installed_file(wanted.packaged)):
        yield FilePlace(installed, f"Reinstall {wanted.packaged.package}")


def _with_and_without_gz(path: Path) -> tuple[Path, Path]:
    return path, path.with_name(path.name.removesuffix(".gz"))


def _remote(wanted: DataFile) -> list[RemoteFile]:
    """Return the remote files. Those of a text have no digest: its lines are verified instead."""
    digest = "" if wanted.is_text else wanted.sha256
    return [RemoteFile(url, digest, wanted.size) for url in wanted.urls]


def _sources(wanted: DataFile) -> list[PackagedFile | RemoteFile]:
    return [*([wanted.packaged] if wanted.packaged else []), *_remote(wanted)]


def _in_cache(wanted: DataFile, source: RemoteFile | None = None) -> Path:
    if wanted.packaged:
        return packaged_path(wanted.packaged)
    name = source.name if source else Path(wanted.path).name
    return cache_dir() / f"{wanted.name}-{wanted.version}" / name


def _fetch_first(wanted: DataFile, announce: Announce) -> FilePlace:
    failures = ["HF_HUB_OFFLINE is set"] if offline() else []
    for source in [] if offline() else _sources(wanted):
        if failures:
            announce(f"{failures[-1]}; trying the next source")
        try:
            return FilePlace(_fetch(source, wanted, announce), DELETE)
        except FetchError as error:
            failures.append(error.failure)
    reason = "; ".join(failures) or "it has no known source"
    origin = next(iter(wanted.urls), wanted.origin or "the file")
    raise DataError(
        f"{wanted.name} {wanted.version}: is not on this machine ({reason}). Put {origin} at "
        f"{_in_cache(wanted)}, or as {wanted.path} into a folder for --data."
    )


def _fetch(source: PackagedFile | RemoteFile, wanted: DataFile, announce: Announce) -> Path:
    if isinstance(source, PackagedFile):
        return packaged_file(source, announce)
    if source.name.endswith(".parquet") and not can_read_parquet():
        raise FetchError(
            f"{source.host} has it as parquet: {HOW_TO_READ_PARQUET}", "Or get it elsewhere"
        )
    return download(source, _in_cache(wanted, source), announce)


def choose_files(names: Iterable[str]) -> list[DataFile]:
    """Return the named data files, or all if there are no names."""
    return [data_files.get(name) for name in tuple(names) or data_files.names()]


def find_data(wanted: DataFile, data_dir: Path | None = None) -> DataState:
    """Look up a data file without reading it."""
    place = find(wanted, data_dir)
    if place is None:
        return DataState(wanted, "not here")
    return DataState(wanted, "not verified", str(place.path))


def verify_data(wanted: DataFile, data_dir: Path | None = None) -> DataState:
    """Check a data file on this machine: count every record and compare the digest."""
    path = None
    try:
        place = find(wanted, data_dir)
        if place is None:
            return DataState(wanted, "not here")
        path = str(place.path)
        verify(wanted, place)
    except DataError as error:
        return DataState(wanted, "damaged", path, str(error))
    return DataState(wanted, "ok", path)


def check_data(wanted: DataFile, data_dir: Path | None = None) -> DataState:
    """Check a data file like ``verify_data``, but parse it only if it is not the released file."""
    try:
        place = find(wanted, data_dir)
    except DataError as error:
        return DataState(wanted, "damaged", detail=str(error))
    if place is not None and is_released_file(place.path, wanted):
        return DataState(wanted, "ok", str(place.path))
    return verify_data(wanted, data_dir)


def download_data(wanted: DataFile, announce: Announce, data_dir: Path | None = None) -> DataState:
    """Fetch a data file into the cache unless it exists. A failure is part of the state."""
    try:
        return DataState(wanted, "ok", str(locate(wanted, announce, data_dir)))
    except DataError as error:
        return DataState(wanted, "not here", detail=str(error))
