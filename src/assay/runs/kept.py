"""Cache small data in files that are signed with the user's key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from assay.data import codec
from assay.datasets import read_sealed, write_sealed


class KeptData:
    """JSON data by key, safe for concurrent runs. A damaged or foreign file counts as missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> Any:
        """Return what was stored, or None."""
        content = read_sealed(self._path(key), self._purpose(key))
        return None if content is None else json.loads(content)

    def has(self, key: str) -> bool:
        """Return whether something is stored. It may be damaged, which only ``get`` finds."""
        return self._path(key).is_file()

    def put(self, key: str, data: Any) -> None:
        write_sealed(self._path(key), self._purpose(key), codec.dumps(data).encode())

    def _purpose(self, key: str) -> str:
        return f"{self._folder.name}/{key}"

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key[2:]}.json"
