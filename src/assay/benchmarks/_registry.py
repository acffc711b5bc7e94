"""Find benchmarks by name, or by the path of a file that defines one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from assay.benchmarks.own.file import is_file, load_file
from assay.benchmarks.support.description import Description, list_suites
from assay.progress import Announce
from assay.registry import Registry
from assay.types import Benchmark

# Takes the receiver of notes and the user's data folder, if any. Returns the benchmark.
Loader = Callable[[Announce, Path | None], Benchmark]


class Benchmarks(Registry[Loader]):
    """The loaders of benchmarks, and descriptions that need no data."""

    def __init__(self) -> None:
        super().__init__("benchmark", "assay.benchmarks")
        self._descriptions: dict[str, Description] = {}

    def register(
        self, name: str, description: Description | None = None
    ) -> Callable[[Loader], Loader]:
        """Register a loader. Without a description, ``assay benchmarks`` lists only the name."""
        if description is not None:
            self._descriptions[name] = description
        return super().register(name)

    def get(self, name: str) -> Loader:
        """Return the loader of a benchmark, or of the user's own file with this path."""
        if is_file(name):
            return functools.partial(load_file, Path(name), self.names())
        return super().get(name)

    def describe(self, name: str) -> Description | None:
        """Return the description of a benchmark, or None if it was registered without one."""
        self.get(name)
        return self._descriptions.get(name)

    def suites(self) -> dict[str, list[str]]:
        """Return the benchmarks of every named suite."""
        return list_suites({name: self._descriptions.get(name) for name in self.names()})


benchmarks = Benchmarks()
