"""Load benchmarks by name. Each is a module in this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from assay.benchmarks.support.description import Description, list_suites
from assay.benchmarks.support.test_code import code_tests
from assay.errors import UsageError
from assay.progress import Announce
from assay.registry import Registry
from assay.types import Benchmark

__all__ = ["Benchmarks", "Description", "Loader", "benchmarks", "code_tests", "load", "of_split"]

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

    def describe(self, name: str) -> Description | None:
        """Return the description of a benchmark, or None if it was registered without one."""
        self.get(name)
        return self._descriptions.get(name)

    def suites(self) -> dict[str, list[str]]:
        """Return the benchmarks of every named suite."""
        return list_suites({name: self._descriptions.get(name) for name in self.names()})


benchmarks = Benchmarks()


def of_split(name: str, split: str) -> str:
    """Return the name of a benchmark's split, which is a benchmark of its own."""
    if split and f"{name}-{split}" not in benchmarks.names():
        splits = [n[len(name) + 1 :] for n in benchmarks.names() if n.startswith(f"{name}-")]
        remedy = f"Choose {', '.join(splits)}" if splits else "Drop --split"
        raise UsageError(f"{name}: has no split '{split}'. {remedy}.")
    return f"{name}-{split}" if split else name


def load(name: str, announce: Announce = lambda _: None, data_dir: Path | None = None) -> Benchmark:
    """Return the benchmark. Find its data (first in ``data_dir``) or download it, and verify it."""
    return benchmarks.get(name)(announce, data_dir)
