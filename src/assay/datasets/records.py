"""Read the records of a data file, in any form, and check them against the pin."""

from __future__ import annotations

import hashlib
import importlib.util
import zlib
from typing import TYPE_CHECKING, Any

from assay.data import codec
from assay.data.reading import open_bounded, parse_json
from assay.errors import DataError, install_hint

if TYPE_CHECKING:
    from pathlib import Path

    from assay.datasets.catalogue import DataFile

MOST_BYTES = 1 << 30  # the largest pinned file has 8 MB
HOW_TO_READ_PARQUET = f"{install_hint('parquet')} to read it"


def read_verified(path: Path, wanted: DataFile, remedy: str) -> list[dict[str, Any]]:
    """Return the file's records. Raise DataError unless they are the pinned ones, in order.

    The digest is that of the records, not of the bytes: the same data exists plain and gzipped, as
    JSON and JSONL, indented or not, and as parquet.
    """
    try:
        found = _read(path, is_text=wanted.is_text)
        if len(found) != wanted.records:
            raise ValueError(f"{len(found)} records instead of {wanted.records}")
        digest = codec.digest(found)
        if digest != wanted.records_sha256:
            raise ValueError(
                f"records' sha256 {digest[:12]}…, expected {wanted.records_sha256[:12]}…"
            )
    except (OSError, EOFError, ValueError, zlib.error, MemoryError) as error:
        said = (error.strerror if isinstance(error, OSError) else None) or error
        raise DataError(
            f"{path}: is damaged or another version (expected {wanted.name} {wanted.version}: "
            f"{said}). {remedy}."
        ) from error
    return found


def is_released_file(path: Path, wanted: DataFile) -> bool:
    """Return whether a file is the released one, plain or gzipped. It is not parsed."""
    try:
        return any(_sha256(path, unpack) == wanted.sha256 for unpack in (False, True))
    except (OSError, EOFError, ValueError, zlib.error):
        return False


def can_read_parquet() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


def _sha256(path: Path, unpack: bool) -> str:
    with open_bounded(path, MOST_BYTES, unpack=unpack) as file:
        return hashlib.sha256(file.read()).hexdigest()


def _read(path: Path, *, is_text: bool) -> list[Any]:
    with open_bounded(path, MOST_BYTES) as file:
        raw = file.read()
    if raw.startswith(b"PAR1"):
        return _parquet(path)
    if is_text:
        lines = raw.decode().split("\n")[:-1]
        return [{"text": f"{line}\n" if line.strip() else ""} for line in lines]
    if raw.lstrip().startswith(b"["):
        found = parse_json(raw, any_number=True)
    else:
        found = [parse_json(line, any_number=True) for line in raw.split(b"\n") if line.strip()]
    if not all(isinstance(record, dict) for record in found):
        raise ValueError("not a list of records")
    return list(found)


def _parquet(path: Path) -> list[Any]:
    if not can_read_parquet():
        raise DataError(f"{path}: is a parquet file. Run {HOW_TO_READ_PARQUET}.")
    from pyarrow import parquet

    try:
        opened = parquet.ParquetFile(path)
        groups = (opened.metadata.row_group(i) for i in range(opened.metadata.num_row_groups))
        if sum(group.total_byte_size for group in groups) > MOST_BYTES:
            raise ValueError("is too large")
        return list(opened.read().to_pylist())
    except Exception as error:  # pyarrow has its own family of errors
        raise ValueError(f"not a parquet file ({error})") from error
