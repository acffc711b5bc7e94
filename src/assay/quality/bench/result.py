"""Define the result of a measurement, in the structure and order of its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.models import Loading
from assay.quality.bench.machine import MachineFacts
from assay.quality.bench.throughput import Round
from assay.runs.stores.bench_files import Figures
from assay.types import ModelIdentity, PromptForm


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """Hold the settings that were used. The seed and the prompt form may be automatic."""

    prompt_tokens: int
    new_tokens: int
    batches: tuple[int, ...]
    rounds: int
    seed: int
    prompt_form: PromptForm
    temperature: float


@dataclass(frozen=True, slots=True)
class BenchResult:
    """Hold everything that was measured. docs/quality.md describes the figures."""

    schema: int
    model: str
    timestamp: str
    tokens_per_second: float | None
    time_to_first_token_ms: float
    prefill_tokens_per_second: float | None
    load_s: float | None
    used_gpu: bool
    peak_memory_mb: float | None
    gpu_peak_memory_mb: float | None
    figures: Figures
    rounds: tuple[Round, ...]
    settings: BenchSettings
    loading: Loading
    model_identity: ModelIdentity
    engine: Mapping[str, object]  # as the engine describes itself
    machine: MachineFacts
