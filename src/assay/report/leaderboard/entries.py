"""Sort runs into blocks: runs of one protocol together, runs of others apart."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from assay.data import codec
from assay.models.names import base_name
from assay.protocol import RecordedProtocol
from assay.report.leaderboard.board import Cell
from assay.runs import Result, RunEntry

# Fields of a protocol that belong to a benchmark. The others are settings that a block shares.
OF_BENCHMARK = (
    "hash", "benchmark", "benchmark_version", "data_sha256", "problems", "problems_sha256",
    "tests", "limits", "time_rule", "environment", "origin",
)  # fmt: skip
ModelKey = tuple[str, ...]  # base name, then what identifies the model
BlockEntries = dict[str, list[RunEntry]]  # by benchmark: the comparable runs of each
PARTS = ("engine", "variant", "weights_sha256", "tokenizer_sha256", "template_sha256")
WEIGHTS = 1 + PARTS.index("weights_sha256")  # position in a key


def as_entry(run: Result | RunEntry) -> RunEntry:
    """Return a result as a run of the history, in which runs that are not finished are too."""
    if isinstance(run, RunEntry):
        return run
    return RunEntry(
        run.run, run.benchmark, run.model, run.timestamp, run.config.problem_selection,
        run.model_identity, run.protocol, run,
    )  # fmt: skip


def model_key(run: Result | RunEntry) -> ModelKey:
    """Return what makes a row. Recorded completions identify no weights, so only the name does.

    Versions of assay name the same file differently. Names that users give stay apart.
    """
    identity = run.model_identity
    if run.protocol.origin or identity is None:
        return (run.model,)
    return (base_name(run.model), *(str(getattr(identity, part)) for part in PARTS))


def list_models(block: BlockEntries) -> dict[ModelKey, str]:
    """Return the models of a block, each with the name that its newest run has."""
    runs = [entry for runs in block.values() for entry in runs]
    return {model_key(run): run.model for run in sorted(runs, key=lambda run: run.timestamp)}


def comparable_key(protocol: RecordedProtocol) -> str:
    """Return the same text for runs that are comparable: the protocol's hash.

    The hash of recorded completions has the digest of their file in it. They are compared by how
    they were judged, in separate blocks.
    """
    if not protocol.origin:
        return protocol.hash
    content = protocol.to_json()
    return codec.digest({k: v for k, v in content.items() if k not in ("hash", "origin")})


def split_blocks(entries: Iterable[RunEntry]) -> list[BlockEntries]:
    """Return the blocks, the one with the most models first.

    A block has runs with the same settings, and of every benchmark only one protocol. If there are
    several, the one with the most models is in the first block, and so on.
    """
    by_settings: dict[str, dict[str, list[RunEntry]]] = defaultdict(lambda: defaultdict(list))
    for entry in entries:
        content = entry.protocol.to_json()
        shared = {name: value for name, value in content.items() if name not in OF_BENCHMARK}
        key = json.dumps([shared, bool(entry.protocol.origin)], sort_keys=True)
        by_settings[key][entry.benchmark].append(entry)
    blocks: list[BlockEntries] = []
    for by_benchmark in by_settings.values():
        protocols = {name: _split_protocols(runs) for name, runs in by_benchmark.items()}
        for level in range(max(map(len, protocols.values()))):
            runs_of_level = {
                name: runs[level] for name, runs in protocols.items() if level < len(runs)
            }
            blocks.append(dict(sorted(runs_of_level.items())))

    def order(block: BlockEntries) -> tuple[int, str]:
        newest = max(entry.timestamp for runs in block.values() for entry in runs)
        return len(list_models(block)), newest

    return sorted(blocks, key=order, reverse=True)


def _split_protocols(runs: Sequence[RunEntry]) -> list[list[RunEntry]]:
    by_protocol: dict[str, list[RunEntry]] = defaultdict(list)
    for entry in runs:
        by_protocol[comparable_key(entry.protocol)].append(entry)

    def order(group: list[RunEntry]) -> tuple[bool, int, str]:
        whole = not group[0].selection
        return whole, len(set(map(model_key, group))), max(one.timestamp for one in group)

    return sorted(by_protocol.values(), key=order, reverse=True)


def choose_cell(runs: Sequence[RunEntry]) -> Cell:
    """Return the run that stands for a model: the newest complete one, never the best.

    Without a complete run it is the newest with a score, and otherwise the newest of all.
    """
    cells = [Cell(entry.run, entry.timestamp, entry.result, len(runs) - 1) for entry in runs]
    states = ("unfinished", "incomplete", "complete")
    return max(cells, key=lambda cell: (states.index(cell.state), cell.timestamp, cell.run))


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
    keys = [(run.model, *model_key(run)[1:]) for run in runs]
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
