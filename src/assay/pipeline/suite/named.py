"""Replace the name of a suite, such as ``core``, by its benchmarks."""

from __future__ import annotations

from collections.abc import Iterable

from assay.benchmarks import benchmarks


def expand_suites(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names with those of suites replaced by their benchmarks, each once."""
    suites = benchmarks.suites()
    return tuple(dict.fromkeys(one for name in names for one in suites.get(name, [name])))
