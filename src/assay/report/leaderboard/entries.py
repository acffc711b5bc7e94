"""Sort runs into blocks: runs of one protocol together, runs of others apart."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from assay.data import codec
from assay.models.names import base_name
from assay.protocol import RecordedProtocol
from assay.report.leaderboard.board import Cell
from assay.runs import Result, RunEntry
from assay.types import ModelIdentity

# Fields of a protocol that belong to a benchmark. The others are settings that a block shares.
OF_BENCHMARK = (
    "hash", "benchmark", "benchmark_version", "data_sha256", "problems", "problems_sha256",
    "tests", "limits", "time_rule", "environment", "origin",
)  # fmt: skip
ModelKey = tuple[str, ...]  # base name, then what identifies the model
PARTS = ("engine", "variant", "weights_sha256", "tokenizer_sha256", "template_sha256")
WEIGHTS = 1 + PARTS.index("weights_sha256")  # position in a key


@dataclass(frozen=True, slots=True)
class LeaderboardEntry:
    """A run, finished or not."""

    run: str
    timestamp: str
    benchmark: str
    selection: str
    protocol: RecordedProtocol
    model: ModelKey
    name: str
    result: Result | None

    @property
    def label(self) -> str:
        return f"{self.benchmark}{self.selection}"


@dataclass(frozen=True, slots=True)
class BlockEntries:
    """The runs of a block, by benchmark: the comparable ones of each."""

    by_benchmark: dict[str, list[LeaderboardEntry]]

    @property
    def models(self) -> list[ModelKey]:
        found = (entry.model for runs in self.by_benchmark.values() for entry in runs)
        return list(dict.fromkeys(found))

    @property
    def names(self) -> dict[ModelKey, str]:
        """Return the name that the newest run of each model has."""
        runs = [entry for runs in self.by_benchmark.values() for entry in runs]
        return {entry.model: entry.name for entry in sorted(runs, key=lambda run: run.timestamp)}

    @property
    def newest(self) -> str:
        return max(entry.timestamp for runs in self.by_benchmark.values() for entry in runs)


def as_entry(run: Result | RunEntry) -> LeaderboardEntry:
    """Return the entry of a result, or of a run that is not finished."""
    selection = run.config.problem_selection if isinstance(run, Result) else run.selection
    return LeaderboardEntry(
        run=run.run,
        timestamp=run.timestamp,
        benchmark=run.benchmark,
        selection=selection,
        protocol=run.protocol,
        model=_model_key(run.model, run.model_identity, recorded=bool(run.protocol.origin)),
        name=run.model,
        result=run if isinstance(run, Result) else run.result,
    )


def _model_key(name: str, identity: ModelIdentity | None, *, recorded: bool) -> ModelKey:
    """Return what makes a row. Recorded completions identify no weights, so only the name does.

    Versions of assay name the same file differently. Names that users give stay apart.
    """
    if recorded or identity is None:
        return (name,)
    return (base_name(name), *(str(getattr(identity, part)) for part in PARTS))


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


def split_blocks(entries: Iterable[LeaderboardEntry]) -> list[BlockEntries]:
    """Return the blocks, the one with the most models first.

    A block has runs with the same settings, and of every benchmark only one protocol. If there are
    several, the one with the most models is in the first block, and so on.
    """
    by_settings: dict[str, dict[str, list[LeaderboardEntry]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for entry in entries:
        by_settings[_settings_key(entry.protocol)][entry.benchmark].append(entry)
    blocks: list[BlockEntries] = []
    for by_benchmark in by_settings.values():
        protocols = {name: _split_protocols(runs) for name, runs in by_benchmark.items()}
        for level in range(max(map(len, protocols.values()))):
            found = {name: runs[level] for name, runs in protocols.items() if level < len(runs)}
            blocks.append(BlockEntries(dict(sorted(found.items()))))
    return sorted(blocks, key=lambda block: (len(block.models), block.newest), reverse=True)


def _split_protocols(runs: Sequence[LeaderboardEntry]) -> list[list[LeaderboardEntry]]:
    found: dict[str, list[LeaderboardEntry]] = defaultdict(list)
    for entry in runs:
        found[comparable_key(entry.protocol)].append(entry)

    def order(group: list[LeaderboardEntry]) -> tuple[bool, int, str]:
        whole = not group[0].selection
        return whole, len({one.model for one in group}), max(one.timestamp for one in group)

    return sorted(found.values(), key=order, reverse=True)


def choose_cell(runs: Sequence[LeaderboardEntry]) -> Cell:
    """Return the run that stands for a model: the newest complete one, never the best.

    Without a complete run it is the newest with a score, and otherwise the newest of all.
    """
    cells = [Cell(entry.run, entry.timestamp, entry.result) for entry in runs]
    states = ("unfinished", "incomplete", "complete")
    chosen = max(cells, key=lambda cell: (states.index(cell.state), cell.timestamp, cell.run))
    return Cell(chosen.run, chosen.timestamp, chosen.result, len(cells) - 1)


def name_rows(names: Mapping[ModelKey, str]) -> dict[ModelKey, str]:
    """Return a name for every row. Models of one name get what differs in brackets."""
    by_name: dict[str, list[ModelKey]] = defaultdict(list)
    for model, name in names.items():
        by_name[name].append(model)
    return {
        model: f"{name}{_difference(model, by_name[name])}" if len(by_name[name]) > 1 else name
        for model, name in names.items()
    }


def name_runs(runs: Sequence[Result | RunEntry]) -> list[str]:
    """Return the names of runs' models, with engine and data type where one name has several."""
    keys = [(run.model, *as_entry(run).model[1:]) for run in runs]
    names = name_rows({key: key[0] for key in keys})
    return [names[key] for key in keys]


def _difference(model: ModelKey, namesakes: Sequence[ModelKey]) -> str:
    """Return the first parts that tell the models apart: engine and data type, if these do."""
    parts: list[int] = []
    for number in range(1, 1 + len(PARTS)):
        values = {other[number : number + 1] for other in namesakes}
        if len(values) > 1:
            parts.append(number)
        if len({tuple(other[p : p + 1] for p in parts) for other in namesakes}) == len(namesakes):
            break
    shown = [part[:12] for number in parts for part in model[number : number + 1] if part]
    return f" ({', '.join(shown) or 'unknown weights'})"
