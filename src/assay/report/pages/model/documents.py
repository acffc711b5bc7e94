"""Read files that other commands write about a model: perplexity, bench, parity, check and qa."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.data import codec
from assay.data.reading import FileReader
from assay.errors import RunError
from assay.runs.about import Agreement
from assay.runs.stores.bench_files import BenchFile
from assay.types import ModelIdentity

FILES = FileReader(RunError, "Give a file that an assay command wrote")


@dataclass(frozen=True, slots=True)
class TextFacts:
    """The text that a perplexity was measured on."""

    name: str
    sha256: str = ""
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class PerplexityFigures:
    cross_entropy: float
    perplexity: float
    bits_per_byte: float
    tokens: int
    bytes: int
    window: int
    stride: int
    standard_error: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class PerplexityDocument:
    """The output of ``assay perplexity --json``."""

    model: ModelIdentity
    dataset: TextFacts
    results: PerplexityFigures
    used_gpu: bool = False
    seconds: float = 0.0

    @property
    def name(self) -> str:
        return self.model.name


@dataclass(frozen=True, slots=True)
class FindingFigures:
    name: str
    value: float
    bound: float
    decision: str


@dataclass(frozen=True, slots=True)
class DivergenceFigures:
    same: int
    of: int
    positions: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class ParityDocument:
    """The output of ``assay compare-hf --json``."""

    model: ModelIdentity
    reference: ModelIdentity
    precision: str
    prompts: int
    agreement: Agreement
    kl_by_position: tuple[float, ...]
    divergence: DivergenceFigures
    candidate_perplexity: float
    reference_perplexity: float
    perplexity_gap: float
    decision: str
    findings: tuple[FindingFigures, ...] = ()

    @property
    def name(self) -> str:
        return self.model.name


@dataclass(frozen=True, slots=True)
class StageOutcome:
    name: str
    status: str
    reason: str


@dataclass(frozen=True, slots=True)
class CheckDocument:
    """The output of ``assay check --json``."""

    model: str
    sound: bool
    stages: tuple[StageOutcome, ...]

    @property
    def name(self) -> str:
        return Path(self.model).name


@dataclass(frozen=True, slots=True)
class QaAnswer:
    name: str
    decision: str
    reason: str
    figures: object = None


@dataclass(frozen=True, slots=True)
class QaDocument:
    """The evidence that ``assay qa`` writes."""

    decision: str
    tier: str
    model: ModelIdentity
    items: tuple[QaAnswer, ...]
    sha256: dict[str, str] = field(default_factory=dict)
    timestamp: str = ""
    assay: str = ""
    platform: str = ""
    python: str = ""

    @property
    def name(self) -> str:
        return self.model.name


Document = PerplexityDocument | BenchFile | ParityDocument | CheckDocument | QaDocument


@dataclass(frozen=True, slots=True)
class Measurement:
    """A document with its kind. ``key`` is unique per content."""

    key: str
    kind: str
    document: Document
    path: Path

    @property
    def title(self) -> str:
        return f"{TITLES[self.kind]} of {self.document.name}"


# The keys by which a kind of document is recognised.
KINDS: dict[str, tuple[type[Document], frozenset[str]]] = {
    "perplexity": (PerplexityDocument, frozenset(("dataset", "results", "model"))),
    "bench": (BenchFile, frozenset(("figures", "rounds", "model_identity"))),
    "parity": (ParityDocument, frozenset(("agreement", "kl_by_position", "reference"))),
    "check": (CheckDocument, frozenset(("sound", "stages"))),
    "qa": (QaDocument, frozenset(("decision", "tier", "items"))),
}
TITLES = {
    "perplexity": "Perplexity",
    "bench": "Throughput",
    "parity": "Parity",
    "check": "Soundness",
    "qa": "Quality decision",
}


def read_measurement(path: Path) -> Measurement | None:
    """Return the measurement that a file holds, or None if it holds something else."""
    try:
        content = FILES.read_json(path)
    except RunError:
        return None
    return parse_measurement(content, path)


def parse_measurement(content: Any, path: Path) -> Measurement | None:
    """Return a document as a measurement, or None if it is not one or is damaged."""
    if not isinstance(content, dict):
        return None
    for kind, (document_type, keys) in KINDS.items():
        if keys <= content.keys():
            try:
                document: Document = codec.read_known(document_type, content)
            except ValueError:
                return None
            digest = hashlib.sha256(codec.dumps(content).encode()).hexdigest()[:8]
            return Measurement(f"{kind}-{digest}", kind, document, path)
    return None
