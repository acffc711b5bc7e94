"""Benchmarks by name; each is a file of its own in this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from assay.benchmarks.data import looking_in
from assay.registry import Registry
from assay.types import Benchmark

Announce = Callable[[str], None]
benchmarks: Registry[Callable[[Announce], Benchmark]] = Registry("benchmark", "assay.benchmarks")


def load(name: str, announce: Announce = lambda _: None, data_dir: Path | None = None) -> Benchmark:
    """The benchmark's problems, found (in ``data_dir`` first) or fetched, and verified."""
    with looking_in(data_dir):
        return benchmarks.get(name)(announce)
