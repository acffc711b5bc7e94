"""Find the files that a report is made of: runs, suites, and measurements of models."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from assay.data import codec
from assay.data.reading import FileReader
from assay.errors import RunError
from assay.report.leaderboard.entries import name_runs
from assay.runs import Result
from assay.runs.about import Agreement
from assay.runs.history import RunEntry, collect_runs, list_runs, read_own_result
from assay.runs.stores.bench_files import BenchFile
from assay.runs.stores.suites import FOLDER, SuiteRecord, read_suite
from assay.types import ModelIdentity

FILES = FileReader(RunError, "Give a file that an assay command wrote")
SAFE_KEY = re.compile(r"[\w.+-]{1,200}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TextFacts:
    """The text that a perplexity was measured on."""

    name: str


@dataclass(frozen=True, slots=True)
class PerplexityFigures:
    cross_entropy: float
    perplexity: float
    bits_per_byte: float
    tokens: int
    bytes: int
    window: int
    stride: int
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


Document = PerplexityDocument | BenchFile | ParityDocument | CheckDocument | QaDocument


@dataclass(frozen=True, slots=True)
class Measurement:
    """A document with its kind. ``key`` is unique per content."""

    key: str
    kind: str
    document: Document
    path: Path

    @property
    def name(self) -> str:
        """Return the name of the model."""
        model = self.document.model
        if isinstance(model, ModelIdentity):
            return model.name
        return Path(model).name if isinstance(self.document, CheckDocument) else model

    @property
    def title(self) -> str:
        return f"{TITLES[self.kind]} of {self.name}"


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
    with contextlib.suppress(RunError, ValueError):  # not JSON, or damaged
        content = FILES.read_json(path)
        for kind, (document_type, keys) in KINDS.items():
            if isinstance(content, dict) and keys <= content.keys():
                document: Document = codec.read_known(document_type, content)
                digest = hashlib.sha256(codec.dumps(content).encode()).hexdigest()[:8]
                return Measurement(f"{kind}-{digest}", kind, document, path)
    return None


@dataclass(frozen=True, slots=True)
class RunSource:
    """A run: its entry in the history, and its folder if that is there."""

    key: str  # unique in the report: its name, with a number if two have the same
    entry: RunEntry
    folder: Path | None
    results_dir: Path
    model: str = ""  # its name, with the engine if another run has the same name


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything that a report shows, newest runs first."""

    runs: tuple[RunSource, ...]
    suites: tuple[SuiteRecord, ...] = ()
    measurements: tuple[Measurement, ...] = ()


def open_sources(
    references: Sequence[str],
    results_dir: Path,
    warn: Callable[[str], None] = lambda _: None,
    read: Callable[[Path], Result] = read_own_result,
) -> Sources:
    """Return what the references name: runs, suites, results folders, files of measurements.

    Without references, return what is in ``results_dir``. Raise RunError for a reference that is
    nothing of these. ``warn`` gets a line for every file of a folder that cannot be read. ``read``
    reads the results files of folders.
    """
    finder = _Finder(results_dir, warn, read)
    for reference in references or [str(results_dir)]:
        finder.add(reference)
    return finder.sources()


class _Finder:
    """Collect sources, each once."""

    def __init__(
        self, results_dir: Path, warn: Callable[[str], None], read: Callable[[Path], Result]
    ) -> None:
        self._results_dir, self._warn, self._read = results_dir, warn, read
        self._runs: dict[tuple[str, str, str], RunSource] = {}
        self._suites: dict[str, SuiteRecord] = {}
        self._measurements: dict[str, Measurement] = {}

    def add(self, reference: str) -> None:
        path = Path(reference)
        is_run = (path / "run.json").exists() or (path.parent / f"{path.name}.json").is_file()
        if path.is_dir() and not is_run:
            self._add_folder(path)
        elif path.is_file() and (measurement := read_measurement(path)):
            self._measurements.setdefault(measurement.key, measurement)
        elif path.is_file() and path.parent.name == FOLDER:
            self._add_suite(read_suite(path), path.parent.parent)
        else:
            self._add_named(reference)

    def sources(self) -> Sources:
        runs = sorted(self._runs.values(), key=lambda run: run.entry.timestamp, reverse=True)
        measurements = tuple(self._measurements.values())
        return Sources(tuple(_number(runs)), tuple(self._suites.values()), measurements)

    def _add_folder(self, folder: Path) -> None:
        results = set()
        for entry in list_runs(folder, self._warn, self._read):
            self._add_run(entry, folder)
            if entry.result is not None:
                results.add(entry.result.path)
        for path in sorted((folder / FOLDER).glob("*.json")):
            try:
                record = read_suite(path)
            except RunError as error:
                self._warn(str(error))
                continue
            self._suites.setdefault(record.suite, record)
        for path in sorted(set(folder.glob("*.json")) - results):
            if not path.is_symlink() and (measurement := read_measurement(path)):
                self._measurements.setdefault(measurement.key, measurement)

    def _add_named(self, reference: str) -> None:
        suite = self._results_dir / FOLDER / f"{reference}.json"
        if suite.is_file():
            self._add_suite(read_suite(suite), self._results_dir)
            return
        for entry in collect_runs([reference], self._results_dir, self._warn):
            place = entry.result.path.parent if entry.result else Path(reference).parent
            self._add_run(entry, place)

    def _add_suite(self, record: SuiteRecord, results_dir: Path) -> None:
        self._suites.setdefault(record.suite, record)
        entries = {entry.run: entry for entry in list_runs(results_dir, self._warn, self._read)}
        names = sorted({row.run for row in record.rows if row.run})
        for name in names:
            if name not in entries:
                raise RunError(
                    f"{record.suite}: its run {name} is not in {results_dir}. Restore it from a "
                    "copy."
                )
        for name in names:
            self._add_run(entries[name], results_dir)

    def _add_run(self, entry: RunEntry, results_dir: Path) -> None:
        folder = results_dir / entry.run
        if entry.result is not None and entry.result.folder.is_dir():
            folder = entry.result.folder
        known = folder if (folder / "run.json").is_file() else None
        key = (entry.run, entry.timestamp, entry.model)
        self._runs.setdefault(key, RunSource(entry.run, entry, known, results_dir))


def _number(runs: Sequence[RunSource]) -> list[RunSource]:
    """Return the runs with unique keys, which need no quotes in HTML and addresses."""
    seen: dict[str, int] = {}
    result = []
    for run, model in zip(runs, name_runs([run.entry for run in runs]), strict=True):
        name = run.key
        if not SAFE_KEY.fullmatch(name):  # a folder that was renamed
            digest = hashlib.sha256(name.encode("utf-8", "surrogateescape"))
            name = f"run-{digest.hexdigest()[:16]}"
        count = seen[name] = seen.get(name, 0) + 1
        key = name if count == 1 else f"{name}~{count}"
        result.append(replace(run, key=key, model=model))
    return result
