"""Load the benchmark of a run, which may be a user's file."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from assay import benchmarks
from assay.errors import DataError

if TYPE_CHECKING:
    from assay.types import Benchmark

Load = Callable[[str], "Benchmark"]  # takes the name of a benchmark


def loader_of(file: str, data_sha256: str | None, load: Load) -> Load:
    """Return what loads the benchmark of a run. ``file`` is its path if it is a user's own.

    A run can come from someone else. So a file is used only if it has the run's digest, and a path
    in place of a name is refused.
    """

    @functools.cache
    def load_own(_: str) -> Benchmark:
        return benchmarks.load_unchanged(Path(file), data_sha256 or "")

    def load_named(name: str) -> Benchmark:
        if benchmarks.is_file(name):
            raise DataError(f"{name}: is not the name of a benchmark. Restore the run's files.")
        return load(name)

    return load_own if file else load_named
