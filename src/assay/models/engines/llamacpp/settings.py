"""Settings that llama.cpp's processes get, and facts that they report."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.models.facts import EngineFacts
from assay.models.named_values import NamedValue
from assay.models.workers.messages import EngineWorkerSettings, TemplateSettings


@dataclass(frozen=True, slots=True)
class Budget:
    """The largest number of tokens of a thought, and the marks around one."""

    tokens: int
    start: str
    end: str


@dataclass(frozen=True, slots=True)
class LlamaSettings(EngineWorkerSettings):
    """``invariant``: on a CPU, results with these weights do not depend on the batch."""

    path: str
    parallel: int
    context: int
    model_context: int
    threads: int
    device: str
    invariant: bool
    logprobs: bool = False
    marks: bool = False  # of thoughts, which stay in the text
    options: tuple[NamedValue, ...] = ()
    budget: Budget | None = None
    template: TemplateSettings = field(default_factory=TemplateSettings)


@dataclass(frozen=True, slots=True)
class LlamaScoreSettings(EngineWorkerSettings):
    path: str
    context: int
    threads: int
    device: str


@dataclass(frozen=True, slots=True)
class LlamaFacts(EngineFacts):
    xllamacpp: str | None = None
    device: str | None = None
    parallel: int | None = None
    batch_invariant: bool | None = None
    threads: int | None = None
    engine_options: tuple[NamedValue, ...] | None = None
    thinks: bool | None = None
