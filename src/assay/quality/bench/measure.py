"""Measure how fast a model is as the harness runs it: rounds of the same work, timed outside."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import itertools
import secrets
import time
from dataclasses import dataclass
from typing import Any, TypeVar

from assay import models
from assay.errors import ModelError, UsageError
from assay.models import EngineOptions, Loading, Model
from assay.progress import Reporter, Silent
from assay.quality.bench.prompts import prompt_of, texts
from assay.quality.bench.throughput import (
    BenchResult,
    BenchSettings,
    Round,
    Timed,
    describe_machine,
    figures,
)
from assay.types import Decoding, Prompt, PromptForm, Request

SCHEMA = 1
SHORT = 8  # tokens: of the prompt that loads a model, and made for each batch to warm up
DIGITS = 6
T = TypeVar("T")
SILENT = Silent()
MOST_TOKENS, MOST_BATCH, MOST_ROUNDS = 1 << 20, 4096, 1000


@dataclass(frozen=True, slots=True)
class BenchConfig:
    """The settings of a measurement. ``seed`` chooses the texts."""

    model: str
    engine: EngineOptions = EngineOptions()  # noqa: RUF009 - frozen
    prompt_tokens: int = 128
    new_tokens: int = 128
    batches: tuple[int, ...] = (1, 2, 4, 8)
    rounds: int = 3
    seed: int | None = None  # none: 0; but servers, which may know those, get new texts

    def __post_init__(self) -> None:
        _check("--prompt-tokens", self.prompt_tokens, 1, MOST_TOKENS)
        _check("--new-tokens", self.new_tokens, 2, MOST_TOKENS)
        _check("--rounds", self.rounds, 1, MOST_ROUNDS)
        for batch in self.batches:
            _check("--batch", batch, 1, MOST_BATCH)
        if not self.batches or len(set(self.batches)) != len(self.batches):
            raise UsageError(
                "--batch: not a list of different batch sizes. Give some, such as 1,2,4."
            )
        if self.engine.batch_mode == "off" and max(self.batches) > 1:
            raise UsageError("--batch: --batch-mode off has batch size 1 only. Give --batch 1.")

    def options(self) -> EngineOptions:
        """Return the engine's options with room for the largest batch."""
        return dataclasses.replace(
            self.engine,
            parallel=self.engine.parallel or max(self.batches),
            longest=self.prompt_tokens + self.new_tokens,
        )


def bench(config: BenchConfig, reporter: Reporter = SILENT) -> BenchResult:
    """Open a model and measure it."""
    engine = models.choose_engine(config.model, reporter.note).engine
    if "parallel" not in models.backends.get(engine).accepts:
        raise UsageError(
            f"{config.model}: the {engine} engine computes nothing, so it has no speed. Give the "
            "model that generated the completions."
        )
    model = models.open_model(config.model, config.options(), reporter.note)
    with contextlib.closing(model):
        return bench_model(model, config, reporter)


def bench_model(model: Model, config: BenchConfig, reporter: Reporter = SILENT) -> BenchResult:
    """Measure a model that was opened with room for the largest batch, and do not close it."""
    started = datetime.datetime.now(datetime.UTC)
    with model.keep_loaded() as loading:
        return _Bench(config, model, loading, reporter).result(started)


class _Bench:
    """The measurement of one model, which stays loaded."""

    def __init__(
        self, config: BenchConfig, model: Model, loading: Loading, reporter: Reporter
    ) -> None:
        self._config, self._model, self._loading = config, model, loading
        self._reporter = reporter
        self._done = 0
        self._steps = (config.rounds + 1) * (2 + len(config.batches)) + 2
        new = 0 if loading == "kept" else secrets.randbelow(1 << 32)
        self._seed = new if config.seed is None else config.seed
        self._texts = texts(self._seed)
        self._numbers = itertools.count()
        self._form: PromptForm = model.identity.prompt_form
        self._counts = False  # whether the engine tells a prompt's tokens before it is run
        self._used_gpu = False

    def result(self, started: datetime.datetime) -> BenchResult:
        config, load_s = self._config, self._load()
        self._round("warming up", warming_up=True)
        names = [f"round {number} of {config.rounds}" for number in range(1, config.rounds + 1)]
        rounds = list(map(self._round, names))
        summary = _round_numbers(figures(rounds, loads_every_call=self._loading == "every call"))
        decode, prefill = summary.decode_tokens_per_second, summary.prefill_tokens_per_second
        usage, identity = self._model.usage(), self._model.identity
        return BenchResult(
            schema=SCHEMA,
            model=identity.name,
            timestamp=started.isoformat(timespec="seconds"),
            tokens_per_second=decode.median if decode else None,
            time_to_first_token_ms=summary.time_to_first_token_ms.median,
            prefill_tokens_per_second=prefill.median if prefill else None,
            load_s=load_s,
            used_gpu=self._used_gpu,
            peak_memory_mb=usage.peak_mb if usage else None,
            gpu_peak_memory_mb=usage.gpu_peak_mb if usage else None,
            figures=summary,
            rounds=tuple(map(_round_numbers, rounds)),
            settings=BenchSettings(
                config.prompt_tokens,
                config.new_tokens,
                config.batches,
                config.rounds,
                self._seed,
                self._form,
                temperature=0.0,
            ),
            loading=self._loading,
            model_identity=identity,
            engine=self._model.describe().to_json(),
            machine=describe_machine(),
        )

    def _load(self) -> float | None:
        """Return how much longer the first request takes than a second one of the same kind."""
        loaded = self._model.usage() is not None
        cold, warm = (self._time_requests("loading", 1, SHORT, 1).seconds for _ in range(2))
        self._counts = bool(self._model.render(self._prompt(SHORT)).tokens)
        if self._counts and self._config.engine.prompt_form == "auto":
            # So that the model continues the text instead of answering and stopping.
            self._form = "text"
        loads = self._loading == "kept" and not loaded
        return round(max(0.0, cold - warm), 3) if loads else None

    def _round(self, name: str, *, warming_up: bool = False) -> Round:
        wanted, new = self._config.prompt_tokens, self._config.new_tokens
        return Round(
            first_token=self._time_requests(name, 1, wanted, 1),
            alone=self._time_requests(name, 1, wanted, new),
            # To warm up, every number of sequences must have been run, but not for long.
            batches=tuple(
                self._time_requests(name, batch, wanted, min(SHORT, new) if warming_up else new)
                for batch in self._config.batches
            ),
        )

    def _time_requests(
        self, what: str, sequences: int, prompt_tokens: int, new_tokens: int
    ) -> Timed:
        """Time requests from the first one to the last answer, by the harness's own clock."""
        self._reporter.preparing(f"{what}, batch size {sequences}", self._done, self._steps)
        self._done += 1
        decoding = Decoding(max_tokens=new_tokens)
        requests = [
            Request(f"bench/{next(self._numbers)}", 0, self._prompt(prompt_tokens), decoding, 0)
            for _ in range(sequences)
        ]
        started = time.perf_counter()
        completions = list(self._model.generate(requests))
        seconds = time.perf_counter() - started
        for completion in completions:
            if completion.error is not None:
                raise ModelError(
                    f"{self._model.identity.name}: did not complete a prompt of about "
                    f"{prompt_tokens} tokens ({completion.error})."
                )
        self._used_gpu |= any(completion.used_gpu for completion in completions)
        return Timed(
            sequences=sequences,
            seconds=seconds,
            prompt_tokens=sum(one.prompt_tokens for one in completions),
            tokens_generated=sum(one.tokens_generated for one in completions),
            ended_early=sum(one.finish_reason == "stop" for one in completions),
        )

    def _prompt(self, tokens: int) -> Prompt:
        def count(prompt: Prompt) -> int | None:
            return len(self._model.render(prompt).tokens) if self._counts else None

        return prompt_of(next(self._texts), tokens, self._form, count)


def _round_numbers(value: T) -> T:
    """Round all numbers of a record. Microseconds and millionths of a token are noise."""
    result: Any = value
    if isinstance(result, float):
        result = round(result, DIGITS)
    elif isinstance(result, tuple):
        result = tuple(map(_round_numbers, result))
    elif dataclasses.is_dataclass(result) and not isinstance(result, type):
        names = (field.name for field in dataclasses.fields(result))
        result = dataclasses.replace(
            result, **{n: _round_numbers(getattr(result, n)) for n in names}
        )
    return result  # type: ignore[no-any-return]


def _check(flag: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise UsageError(f"{flag}: {value} is out of range. Give {least} to {most}.")
