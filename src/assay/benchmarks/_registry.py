"""Find benchmarks by name, or by the path of a file that defines one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from assay.benchmarks.own.file import is_file, load_file
from assay.benchmarks.support.declaring import Description, Loader, list_suites
from assay.progress import Announce
from assay.registry import Registry
from assay.types import Benchmark

if TYPE_CHECKING:
    from assay.datasets.catalogue import DataFile

R = TypeVar("R")


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

    def declare(
        self,
        data: DataFile,
        kind: type[R],
        build: Callable[[list[R]], dict[str, Any]],
        name: str = "",
        *,
        of: str = "",
        problems: int = 0,
        group: str = "functions",
        suites: tuple[str, ...] = (),
        upstream: tuple[str, ...] = ("upstream",),
        environment: str = "",
        **settings: Any,
    ) -> None:
        """Register a benchmark that consists of the records of a pinned file.

        ``build`` returns the fields of ``Benchmark`` that depend on the records, ``settings`` has
        others. ``of`` is the benchmark's own name if it is registered by several, ``problems`` the
        number of them if it is not that of the records, and ``upstream`` its authors' strategies.
        """

        def load(announce: Announce, data_dir: Path | None) -> Benchmark:
            from assay.datasets.catalogue import read_records  # not needed to list benchmarks

            built = build(read_records(kind, data, announce, data_dir))
            return Benchmark(
                of or name or data.name, data.version, data.sha256, environment=environment,
                **built, **settings,
            )  # fmt: skip

        description = Description(
            problems or data.records, data, environment=environment, group=group, suites=suites,
            strategies=upstream,
        )  # fmt: skip
        self.register(name or data.name, description)(load)

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
