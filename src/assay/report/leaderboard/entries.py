"""Sort runs into blocks: runs of one protocol together, runs of others apart."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay import codec
from assay.protocol import RecordedProtocol
from assay.report.leaderboard.board import Cell
from assay.runs import Result, RunEntry
from assay.types import ModelIdentity

# Fields of a protocol that belong to a benchmark. The others are settings that a block shares.
OF_BENCHMARK = (
    "hash", "benchmark", "benchmark_version", "data_sha256", "problems", "problems_sha256",
    "tests", "limits", "time_rule", "environment", "origin",
)  # fmt: skip
ModelKey = tuple[str, ...]  # name, then what identifies the model
PARTS = ("variant", "engine", "weights_sha256", "tokenizer_sha256", "template_sha256")
WEIGHTS = 1 + PARTS.index("weights_sha256")  # position in a key


@dataclass(frozen=True, slots=True)
class Entry:
    """A run, finished or not."""

    run: str
    timestamp: str
    benchmark: str
    selection: str
    protocol: RecordedProtocol
    model: ModelKey
    result: Result | None

    @property
    def label(self) -> str:
        return f"{self.benchmark}{self.selection}"

    @property
    def name(self) -> str:
        return self.model[0]


@dataclass(frozen=True, slots=True)
class BlockEntries:
    """The runs of a block, by benchmark: the comparable ones of each."""

    by_benchmark: dict[str, list[Entry]]

    @property
    def models(self) -> list[ModelKey]:
        found = (entry.model for runs in self.by_benchmark.values() for entry in runs)
        return list(dict.fromkeys(found))

    @property
    def newest(self) -> str:
        return max(entry.timestamp for runs in self.by_benchmark.values() for entry in runs)


def as_entry(run: Result | RunEntry) -> Entry:
    """Return the entry of a result, or of a run that is not finished."""
    selection = run.config.problem_selection if isinstance(run, Result) else run.selection
    return Entry(
        run=run.run,
        timestamp=run.timestamp,
        benchmark=run.benchmark,
        selection=selection,
        protocol=run.protocol,
        model=_model_key(run.model, run.model_identity, recorded=bool(run.protocol.origin)),
        result=run if isinstance(run, Result) else run.result,
    )


def _model_key(name: str, identity: ModelIdentity | None, *, recorded: bool) -> ModelKey:
    """Return what makes a row. Recorded completions identify no weights, so only the name does."""
    if recorded or identity is None:
        return (name,)
    return (name, *(str(getattr(identity, part)) for part in PARTS))


def comparable_key(protocol: RecordedProtocol) -> str:
    """Return the same text for runs that are comparable: the protocol's hash.

    The hash of recorded completions has the digest of their file in it. They are compared by how
    they were judged, in separate blocks.
    """
    if not protocol.origin:
        return protocol.hash
    content = protocol.to_json()
    return codec.digest({k: v for k, v in content.items() if k not in ("hash", "origin")})


def _settings_key(protocol: RecordedProtocol) -> str:
    content = protocol.to_json()
    shared = {name: value for name, value in content.items() if name not in OF_BENCHMARK}
    return json.dumps([shared, bool(protocol.origin)], sort_keys=True)


def split_blocks(entries: Iterable[Entry]) -> list[BlockEntries]:
    """Return the blocks, the one with the most models first.

    A block has runs with the same settings, and of every benchmark only one protocol. If there are
    several, the one with the most models is in the first block, and so on.
    """
    by_settings: dict[str, dict[str, list[Entry]]] = defaultdict(lambda: defaultdict(list))
    for entry in entries:
        by_settings[_settings_key(entry.protocol)][entry.benchmark].append(entry)
    blocks: list[BlockEntries] = []
    for by_benchmark in by_settings.values():
        protocols = {name: _split_protocols(runs) for name, runs in by_benchmark.items()}
        for level in range(max(map(len, protocols.values()))):
            found = {name: runs[level] for name, runs in protocols.items() if level < len(runs)}
            blocks.append(BlockEntries(dict(sorted(found.items()))))
    return sorted(blocks, key=lambda block: (len(block.models), block.newest), reverse=True)


def _split_protocols(runs: Sequence[Entry]) -> list[list[Entry]]:
    found: dict[str, list[Entry]] = defaultdict(list)
    for entry in runs:
        found[comparable_key(entry.protocol)].append(entry)

    def order(group: list[Entry]) -> tuple[bool, int, str]:
        whole = not group[0].selection
        return whole, len({one.model for one in group}), max(one.timestamp for one in group)

    return sorted(found.values(), key=order, reverse=True)


def choose_cell(runs: Sequence[Entry]) -> Cell:
    """Return the run that stands for a model: the newest complete one, never the best.

    Without a complete run it is the newest with a score, and otherwise the newest of all.
    """
    cells = [Cell(entry.run, entry.timestamp, entry.result) for entry in runs]
    states = ("unfinished", "incomplete", "complete")
    chosen = max(cells, key=lambda cell: (states.index(cell.state), cell.timestamp, cell.run))
    return Cell(chosen.run, chosen.timestamp, chosen.result, len(cells) - 1)


def name_rows(models: Sequence[ModelKey]) -> dict[ModelKey, str]:
    """Return a name for every row. Models of one name get what differs in brackets."""
    by_name: dict[str, list[ModelKey]] = defaultdict(list)
    for model in models:
        by_name[model[0]].append(model)
    return {model: _label(model, by_name[model[0]]) for model in models}


def _label(model: ModelKey, namesakes: Sequence[ModelKey]) -> str:
    if len(namesakes) == 1:
        return model[0]
    parts = [
        part[:12]
        for number, part in enumerate(model[1:], 1)
        if part and len({other[number : number + 1] for other in namesakes}) > 1
    ]
    return f"{model[0]} ({', '.join(parts) or 'unknown weights'})"
