"""Describe a benchmark without loading its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.datasets.catalogue import DataFile


@dataclass(frozen=True, slots=True)
class Description:
    """State the number of problems, where they come from, and what programs may import."""

    problems: int
    data: DataFile | None = None  # none: the problems are part of the package
    package_licence: str = ""  # of the problems, if they are part of the package
    environment: str = ""  # package set of the tests; none: the standard library
    group: str = "functions"  # what the problems ask for
    suites: tuple[str, ...] = ()  # named lists of benchmarks that it is part of
    strategies: tuple[str, ...] = ()  # of its authors, the one to try first at the beginning
    place: str = ""  # below a data folder, for files that users get themselves

    @property
    def licence(self) -> str:
        return self.data.licence if self.data else self.package_licence


def list_suites(descriptions: Mapping[str, Description | None]) -> dict[str, list[str]]:
    """Return the names of the benchmarks in every suite, in the order of their names."""
    found: dict[str, list[str]] = {}
    for name, description in sorted(descriptions.items()):
        for suite in description.suites if description else ():
            found.setdefault(suite, []).append(name)
    return dict(sorted(found.items()))
