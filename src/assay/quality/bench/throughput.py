"""The figures of a measurement: its types in the order of its JSON, rates and spreads."""

from __future__ import annotations

import contextlib
import os
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay import __version__
from assay.models import Loading
from assay.runs.stores.bench_files import BatchFigures, Figures, Spread
from assay.types import ModelIdentity, PromptForm
from assay.work.machine import usable_cores


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """The machine that a measurement was made on."""

    assay: str
    python: str
    platform: str
    machine: str
    cpu: str
    cpus: int
    memory_mb: int


def describe_machine() -> MachineFacts:
    """Describe this machine. The CPU has the name that the kernel or Python knows."""
    cpu, memory = platform.processor(), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        pairs = (line.partition(":") for line in lines)
        cpu = next((value.strip() for name, _, value in pairs if name.strip() == "model name"), cpu)
    return MachineFacts(
        __version__, platform.python_version(), platform.platform(), platform.machine(), cpu,
        usable_cores(), memory >> 20,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Timed:
    """Sequences that were requested at once, and how long all of them took together."""

    sequences: int
    seconds: float
    prompt_tokens: int
    tokens_generated: int
    ended_early: int  # sequences that ended before the most tokens were made


@dataclass(frozen=True, slots=True)
class Round:
    """One measurement of everything."""

    first_token: Timed  # one sequence, one new token
    alone: Timed  # one sequence, all new tokens
    batches: tuple[Timed, ...]


def rate(tokens: int, seconds: float) -> float:
    """Return tokens per second."""
    if tokens < 0 or not 0 < seconds < float("inf"):
        raise ValueError(f"{tokens} tokens in {seconds} s: not a rate")
    return tokens / seconds


def decode_rate(tokens: int, seconds: float, first_token_s: float) -> float | None:
    """Return tokens per second after the first token, which is timed separately.

    Return None if nothing follows the first token, or if the rest took no measurable time.
    """
    if tokens < 2 or seconds <= first_token_s:
        return None
    return rate(tokens - 1, seconds - first_token_s)


def spread(values: Sequence[float]) -> Spread:
    """Return the median, range and quartiles."""
    if not values:
        raise ValueError("nothing was measured")
    q1, median, q3 = (
        statistics.quantiles(values, n=4, method="inclusive")
        if len(values) > 1
        else [values[0]] * 3
    )
    low, high = min(values), max(values)
    # Interpolating between two equal numbers may miss them by a rounding.
    q1, median, q3 = (min(max(value, low), high) for value in (q1, median, q3))
    return Spread(median, low, high, q1, q3)


def figures(rounds: Sequence[Round], *, loads_every_call: bool = False) -> Figures:
    """Summarise the rounds. An engine that loads for every call has no prompt rate."""
    firsts = [one.first_token for one in rounds]
    read = [] if loads_every_call else firsts
    return Figures(
        time_to_first_token_ms=spread([first.seconds * 1000 for first in firsts]),
        prefill_tokens_per_second=_spread_of_known(
            rate(first.prompt_tokens, first.seconds) if first.prompt_tokens else None
            for first in read
        ),
        decode_tokens_per_second=_spread_of_known(
            decode_rate(one.alone.tokens_generated, one.alone.seconds, one.first_token.seconds)
            for one in rounds
        ),
        batches=tuple(
            _batch(batch) for batch in zip(*(one.batches for one in rounds), strict=True)
        ),
    )


def _batch(rounds: Sequence[Timed]) -> BatchFigures:
    return BatchFigures(
        sequences=rounds[0].sequences,
        tokens_per_second=_spread_of_known(
            rate(one.tokens_generated, one.seconds) if one.tokens_generated else None
            for one in rounds
        ),
        seconds=spread([one.seconds for one in rounds]),
        tokens_generated=sum(one.tokens_generated for one in rounds),
        ended_early=sum(one.ended_early for one in rounds),
    )


def _spread_of_known(values: Iterable[float | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    return spread(known) if known else None


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """The settings that were used. The seed and the prompt form may be automatic."""

    prompt_tokens: int
    new_tokens: int
    batches: tuple[int, ...]
    rounds: int
    seed: int
    prompt_form: PromptForm
    temperature: float


@dataclass(frozen=True, slots=True)
class BenchResult:
    """Everything that was measured. docs/quality.md describes the figures."""

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
