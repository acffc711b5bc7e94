"""Settings that vLLM's process gets, and facts that it reports."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.models.facts import EngineFacts
from assay.models.named_values import NamedValue
from assay.models.workers.messages import EngineWorkerSettings, TemplateSettings


@dataclass(frozen=True, slots=True)
class VllmSettings(EngineWorkerSettings):
    folder: str
    device: str
    dtype: str
    threads: int
    parallel: int  # 0: vLLM's choice
    adapter: str = ""
    adapter_rank: int = 0
    logprobs: bool = False
    marks: bool = False  # of thoughts, which stay in the text
    options: tuple[NamedValue, ...] = ()  # arguments of the engine
    budget: int | None = None  # tokens of a thought
    tags: tuple[str, str] | None = None  # around one
    template: TemplateSettings = field(default_factory=TemplateSettings)


@dataclass(frozen=True, slots=True)
class VllmFacts(EngineFacts):
    vllm: str | None = None
    device: str | None = None
    dtype: str | None = None
    parallel: int | None = None
    context: int | None = None
    batch_invariant: bool | None = None
    thinks: bool | None = None
