"""Define the figures of ``assay bench``, and read the files that it wrote."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.data import codec
from assay.data.reading import FileReader
from assay.errors import RunError
from assay.types import ModelIdentity

FILES = FileReader(RunError, "Measure again with `assay bench`", unpack=False)
MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Spread:
    """The median, range and quartiles (q1 and q3) of some values."""

    median: float
    min: float
    max: float
    q1: float
    q3: float


@dataclass(frozen=True, slots=True)
class BatchFigures:
    """The figures of so many sequences at a time."""

    sequences: int
    tokens_per_second: Spread | None
    seconds: Spread
    tokens_generated: int  # in all rounds
    ended_early: int


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a model. None means that no round could measure it."""

    time_to_first_token_ms: Spread
    prefill_tokens_per_second: Spread | None
    decode_tokens_per_second: Spread | None
    batches: tuple[BatchFigures, ...]


@dataclass(frozen=True, slots=True)
class BenchFile:
    """The part of a file that others need. ``quality.bench.BenchResult`` is all of it."""

    model: str
    figures: Figures
    model_identity: ModelIdentity
    timestamp: str = ""
    used_gpu: bool = False
    load_s: float | None = None
    peak_memory_mb: float | None = None
    gpu_peak_memory_mb: float | None = None
    settings: dict[str, object] = field(default_factory=dict)
    machine: dict[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.model

    @property
    def weights(self) -> str:
        """Return the digest of the model's weights."""
        return self.model_identity.weights_sha256

    @property
    def highest_rate(self) -> float | None:
        """Return the highest throughput in tokens per second, or None if none was measured."""
        rates = (batch.tokens_per_second for batch in self.figures.batches)
        return max((rate.median for rate in rates if rate), default=None)

    @property
    def memory_bytes(self) -> int | None:
        """Return the highest use of memory, on the GPU if one was used, or None if unknown."""
        used = self.peak_memory_mb if self.gpu_peak_memory_mb is None else self.gpu_peak_memory_mb
        return None if used is None else round(used * MEGABYTE)


def parse_bench(content: Any) -> BenchFile:
    """Return the content of a file. Raise ValueError with one line if it is not one."""
    return codec.read_known(BenchFile, content)


def read_bench(path: Path) -> BenchFile | None:
    """Return a file, or None if there is none or it is damaged."""
    try:
        return parse_bench(FILES.read_json(path)) if path.is_file() else None
    except (RunError, ValueError):
        return None
