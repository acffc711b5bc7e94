"""Declare benchmarks: what describes one without its data, and how pinned files become problems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from assay.progress import Announce
from assay.types import Benchmark, Problem, Prompt, PromptForm, Strategy, TimeRule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.datasets.catalogue import DataFile

R = TypeVar("R")
# Takes the receiver of notes and the user's data folder, if any. Returns the benchmark.
Loader = Callable[[Announce, Path | None], Benchmark]
PromptBuilder = Callable[[Problem, PromptForm], Prompt]
# The rule for CPU limits that benchmarks of short test code share. Of all recorded completions that
# are right under a fixed limit of 10 s, none fails under this rule, and programs that never end
# cost a tenth (benchmarks/time_limits.py, docs/time-limits.md).
SHORT_TESTS = TimeRule(least_s=1.0, factor=100.0)


@dataclass(frozen=True, slots=True)
class Description:
    """The number of problems, where they come from, and what programs may import."""

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
    suites: dict[str, list[str]] = {}
    for name, description in sorted(descriptions.items()):
        for suite in description.suites if description else ():
            suites.setdefault(suite, []).append(name)
    return dict(sorted(suites.items()))


def pin_commit(
    repository: str, commit: str, file: str, sha256: str, records_sha256: str, **facts: Any
) -> DataFile:
    """Declare a data file of a repository on GitHub. Its version is the beginning of the commit."""
    from assay.datasets.catalogue import DataFile, pin

    url = f"https://raw.githubusercontent.com/{repository}/{commit}/{file}"
    facts = {"version": commit[:8], "licence": "MIT", "urls": (url,)} | facts
    return pin(DataFile(sha256=sha256, records_sha256=records_sha256, **facts))


def per_record(make: Callable[[R], Problem]) -> Callable[[list[R]], dict[str, Any]]:
    """Return how a benchmark is built that has a problem for each record."""
    return lambda records: {"problems": tuple(map(make, records))}


def name_strategies(**builders: PromptBuilder) -> dict[str, Strategy]:
    """Return strategies in their first version. An underscore in a name stands for a hyphen."""
    named = {name.replace("_", "-"): build for name, build in builders.items()}
    return {name: Strategy(name, 1, build) for name, build in named.items()}
