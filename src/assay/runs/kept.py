"""A folder of small files, each checked when it is read."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from assay import codec


class KeptData:
    """JSON by key, safe for runs side by side; a damaged file counts as none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> Any:
        """What was kept, or None."""
        try:
            stored = json.loads(self._path(key).read_bytes())
            intact = stored["sha256"] == codec.digest([key, stored["data"]])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return stored["data"] if intact else None

    def put(self, key: str, data: Any) -> None:
        path = self._path(key)
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        # What cannot be kept costs time, nothing else.
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(codec.dumps({"sha256": codec.digest([key, data]), "data": data}))
            partial.replace(path)

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key[2:]}.json"
