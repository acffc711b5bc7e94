"""Report which data files are on this machine, and whether they are intact."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from assay.datasets.catalogue import DataFile, data_files, find, locate, verify
from assay.datasets.records import is_released_file
from assay.errors import DataError
from assay.progress import Announce


@dataclass(frozen=True, slots=True)
class DataState:
    """A data file, whether it is on this machine, and where."""

    file: DataFile
    state: Literal["ok", "damaged", "not here", "not verified"]
    path: str | None = None
    detail: str = ""  # what is wrong


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
