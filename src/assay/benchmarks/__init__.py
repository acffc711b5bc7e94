"""Benchmarks by name; each is a file of its own in this folder."""

from __future__ import annotations

from collections.abc import Callable

from assay.registry import Registry
from assay.types import Benchmark

Announce = Callable[[str], None]
benchmarks: Registry[Callable[[Announce], Benchmark]] = Registry("benchmark", "assay.benchmarks")


def load(name: str, announce: Announce = lambda _: None) -> Benchmark:
    """The benchmark's problems, fetched and verified where that is needed."""
    return benchmarks.get(name)(announce)
