"""Load benchmarks by name. Each is a module in this folder, or a file of the user's own."""

from __future__ import annotations

from pathlib import Path

from assay.benchmarks._registry import Benchmarks, benchmarks
from assay.benchmarks.own.file import OwnBenchmark, is_file, load_unchanged, read_own
from assay.benchmarks.support.declaring import Description, Loader
from assay.errors import UsageError
from assay.progress import Announce
from assay.types import Benchmark

__all__ = [
    "Benchmarks", "Description", "Loader", "OwnBenchmark", "benchmarks", "is_file", "load",
    "load_unchanged", "of_split", "read_own",
]  # fmt: skip


def of_split(name: str, split: str) -> str:
    """Return the name of a benchmark's split, which is a separate benchmark."""
    if split and f"{name}-{split}" not in benchmarks.names():
        splits = [n[len(name) + 1 :] for n in benchmarks.names() if n.startswith(f"{name}-")]
        remedy = f"Choose {', '.join(splits)}" if splits else "Drop --split"
        raise UsageError(f"{name}: has no split '{split}'. {remedy}.")
    return f"{name}-{split}" if split else name


def load(name: str, announce: Announce = lambda _: None, data_dir: Path | None = None) -> Benchmark:
    """Return the benchmark. Find its data (first in ``data_dir``) or download it, and verify it.

    A path such as ``./mine.yaml`` names a file of the user's own.
    """
    return benchmarks.get(name)(announce, data_dir)
