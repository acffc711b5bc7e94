"""Load benchmarks by name. Each is a module in this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from assay.errors import UsageError
from assay.progress import Announce
from assay.registry import Registry
from assay.types import Benchmark

# Takes the receiver of notes and the user's data folder, if any. Returns the benchmark.
Loader = Callable[[Announce, Path | None], Benchmark]

benchmarks: Registry[Loader] = Registry("benchmark", "assay.benchmarks")


def of_split(name: str, split: str) -> str:
    """Return the name of a benchmark's split, which is a benchmark of its own."""
    if split and f"{name}-{split}" not in benchmarks.names():
        splits = [
            n.removeprefix(f"{name}-") for n in benchmarks.names() if n.startswith(f"{name}-")
        ]
        remedy = f"Choose {', '.join(splits)}" if splits else "Drop --split"
        raise UsageError(f"{name}: has no split '{split}'. {remedy}.")
    return f"{name}-{split}" if split else name


def load(name: str, announce: Announce = lambda _: None, data_dir: Path | None = None) -> Benchmark:
    """Return the benchmark. Find its data (first in ``data_dir``) or download it, and verify it."""
    return benchmarks.get(name)(announce, data_dir)
