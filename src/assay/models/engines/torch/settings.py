"""Settings that the hf engine's process gets, and facts that it reports."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from assay.models.facts import EngineFacts
from assay.models.named_values import NamedValue
from assay.models.workers.messages import EngineWorkerSettings, TemplateSettings


@dataclass(frozen=True, slots=True)
class Generate:
    """Set how to generate. As a message, it lets a process that only scored accept requests."""

    parallel: int  # 0: as many as fit into memory
    max_tokens: int
    template: TemplateSettings = field(default_factory=TemplateSettings)


@dataclass(frozen=True, slots=True)
class TorchSettings(EngineWorkerSettings):
    """``overrides`` change the model's configuration. Without ``generate`` it only scores."""

    path: str
    device: str
    dtype: str
    adapter: str = ""
    threads: int = 0
    overrides: tuple[NamedValue, ...] = ()
    generate: Generate | None = None


@dataclass(frozen=True, slots=True)
class TorchFacts(EngineFacts):
    transformers: str | None = None
    torch: str | None = None
    device: str | None = None
    dtype: str | None = None
    threads: int | None = None
    parallel: int | None = None
    batch_invariant: bool | None = None
    thinks: bool | None = None

    def of_scoring(self) -> TorchFacts:
        return dataclasses.replace(self, parallel=None, batch_invariant=None)
