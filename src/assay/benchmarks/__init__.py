"""Benchmarks by name; each is a file of its own in this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from assay.datasets.catalogue import looking_in
from assay.errors import UsageError
from assay.progress import Announce
from assay.registry import Registry
from assay.types import Benchmark

benchmarks: Registry[Callable[[Announce], Benchmark]] = Registry("benchmark", "assay.benchmarks")


def of_split(name: str, split: str) -> str:
    """The name of a benchmark's split, which is a benchmark of its own."""
    if split and f"{name}-{split}" not in benchmarks.names():
        splits = [
            n.removeprefix(f"{name}-") for n in benchmarks.names() if n.startswith(f"{name}-")
        ]
        remedy = f"choose {', '.join(splits)}" if splits else "leave --split out"
        raise UsageError(f"{name} has no split '{split}': {remedy}")
    return f"{name}-{split}" if split else name


def load(name: str, announce: Announce = lambda _: None, data_dir: Path | None = None) -> Benchmark:
    """The benchmark's problems, found (in ``data_dir`` first) or fetched, and verified."""
    with looking_in(data_dir):
        return benchmarks.get(name)(announce)
