"""Build a leaderboard from results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from assay.errors import UsageError
from assay.protocol import differences
from assay.report.leaderboard import board
from assay.report.leaderboard.entries import (
    OF_BENCHMARK,
    WEIGHTS,
    BlockEntries,
    ModelKey,
    as_entry,
    choose_cell,
    comparable_key,
    list_models,
    model_key,
    name_rows,
    split_blocks,
)
from assay.report.leaderboard.measures import (
    AGAINST,
    COLUMNS,
    GROUP,
    MEAN,
    MEASURES,
    group_by_tests,
    mark_pareto,
    weigh,
)
from assay.report.summary import describe_differences, describe_settings
from assay.runs import Result, RunEntry
from assay.runs.result import ConfigResult
from assay.scoring.clusters import pool
from assay.types import Decoding, Estimate

RANK, MODEL = "rank", "model"  # what can be sorted by in addition to columns
NO_FACTS: Mapping[str, board.ModelFacts] = MappingProxyType({})


def leaderboard(
    results: Iterable[Result],
    *,
    unfinished: Iterable[RunEntry] = (),
    baselines: Iterable[board.Baseline] = (),
    facts: Mapping[str, board.ModelFacts] = NO_FACTS,
    sort: str = RANK,
    columns: Sequence[str] = (),
    pareto: str = "",
    dollars_per_hour: float = 0.0,
    group_models: board.GroupModels = group_by_tests,
) -> board.Leaderboard:
    """Return one row per model and one column per benchmark, in blocks of comparable runs.

    ``sort`` is ``rank`` (the mean rank), ``model``, a benchmark or an optional column. ``facts``
    are by the digest of a model's weights, or by its name. ``group_models`` returns letters for
    the models of a column; it is used if ``columns`` has ``group``.
    """
    entries = [*map(as_entry, results), *unfinished]
    _check_choices(columns, pareto, sort, entries)
    groups = split_blocks(entries)
    # Columns that are only sorted by or weighed are shown too, each once.
    measures = tuple(name for name in dict.fromkeys([*columns, pareto, sort]) if name in MEASURES)
    grouping = group_models if GROUP in columns else None
    builder = _Builder(facts, sort, measures, pareto, dollars_per_hour, grouping)
    scores = list(baselines)
    blocks = tuple(builder.build(group, groups[0], scores) for group in groups)
    shown = {column.benchmark for block in blocks for column in block.columns}
    return board.Leaderboard(
        blocks=blocks,
        measures=measures,
        pareto=pareto,
        groups=GROUP in columns,
        means=MEAN in (*columns, sort),
        unused=tuple(sorted({one.benchmark for one in scores} - shown)),
    )


def _check_choices(
    columns: Sequence[str], pareto: str, sort: str, entries: Sequence[RunEntry]
) -> None:
    for name in columns:
        if name not in COLUMNS:
            raise UsageError(f"--columns {name}: no such column. Choose {', '.join(COLUMNS)}.")
    if pareto and pareto not in AGAINST:
        raise UsageError(
            f"--pareto {pareto}: cannot be used for this. Choose {', '.join(AGAINST)}."
        )
    benchmarks = sorted({f"{entry.benchmark}{entry.selection}" for entry in entries})
    choices = [RANK, MODEL, *benchmarks, *MEASURES, MEAN]
    if sort not in choices:
        raise UsageError(f"--sort {sort}: no such column. Choose {', '.join(choices)}.")


@dataclass(frozen=True, slots=True)
class _Builder:
    """The settings of a leaderboard, by which its blocks are built."""

    facts: Mapping[str, board.ModelFacts]
    sort: str
    measures: tuple[str, ...]
    pareto: str
    dollars_per_hour: float
    group_models: board.GroupModels | None

    def build(
        self, block: BlockEntries, first: BlockEntries, scores: Sequence[board.Baseline]
    ) -> board.LeaderboardBlock:
        """Return a block with its rows in order."""
        runs = list(block.values())
        newest = [one[0] for one in runs]
        columns = tuple(
            board.Column(f"{one.benchmark}{one.selection}", comparable_key(one.protocol))
            for one in newest
        )
        models = list_models(block)
        names = name_rows(models)
        cells = [self._fill_column(one, names) for one in runs]
        rows = [
            board.Row(
                names[model], tuple(one.get(model) for one in cells), self._find_facts(model, name)
            )
            for model, name in models.items()
        ]
        return board.LeaderboardBlock(
            settings=_describe_settings(newest[0]),
            differences="" if block is first else _describe_difference(first, block),
            recorded=bool(newest[0].protocol.origin),
            columns=columns,
            rows=tuple(self._finish(rows, [column.benchmark for column in columns])),
            baselines=_baseline_rows(scores, columns),
        )

    def _fill_column(
        self, entries: Sequence[RunEntry], names: Mapping[ModelKey, str]
    ) -> dict[ModelKey, board.Cell]:
        """Return the cells of a benchmark with ranks. Only complete results take part in them."""
        by_model: dict[ModelKey, list[RunEntry]] = {}
        for entry in entries:
            by_model.setdefault(model_key(entry), []).append(entry)
        cells = _compare_coverage({model: choose_cell(one) for model, one in by_model.items()})
        complete = {model: cell for model, cell in cells.items() if cell.state == "complete"}
        values = {model: _value(cell) for model, cell in complete.items()}
        ranks = rank(values)
        letters: Mapping[str, str] = {}
        if self.group_models is not None:
            letters = self.group_models(
                {names[model]: cell.result for model, cell in complete.items() if cell.result}
            )
        # Where all models are equal, and where there is only one, none is the best.
        best = max(values.values()) if len(set(values.values())) > 1 else math.nan
        for model, cell in complete.items():
            cells[model] = replace(
                cell, rank=ranks[model], best=values[model] == best,
                group=letters.get(names[model], ""),
            )  # fmt: skip
        return cells

    def _find_facts(self, model: ModelKey, name: str) -> board.ModelFacts:
        """Return the facts of a model by its weights, and then by its name."""
        facts = board.ModelFacts()
        for key in (*model[WEIGHTS : WEIGHTS + 1], name):
            facts = facts.fill(self.facts.get(key, board.ModelFacts()))
        return facts

    def _finish(self, rows: Sequence[board.Row], benchmarks: Sequence[str]) -> list[board.Row]:
        """Return the rows with mean ranks, measures and Pareto marks, in order."""
        position = benchmarks.index(self.sort) if self.sort in benchmarks else None
        result = []
        for row in rows:
            ranks = _ranks(row)  # the mean is known if all columns have a complete result
            mean = sum(ranks) / len(ranks) if len(ranks) == len(row.cells) else None
            quality = _quality(row, position)
            ranked = replace(row, mean_rank=mean, quality=quality, pooled=_pool(row))
            price = self.dollars_per_hour
            measures = {name: MEASURES[name].find(ranked, price) for name in self.measures}
            result.append(replace(ranked, measures=measures))
        means = {row.pooled.value for row in result if row.pooled}
        best = max(means) if len(means) > 1 else math.nan
        result = [
            replace(row, best_pooled=row.pooled is not None and row.pooled.value == best)
            for row in result
        ]
        if self.pareto:
            marks = mark_pareto([weigh(row, self.pareto) for row in result])
            result = [replace(row, pareto=mark) for row, mark in zip(result, marks, strict=True)]
        return sorted(result, key=lambda row: (*self._sort_key(row, position), row.model))

    def _sort_key(self, row: board.Row, position: int | None) -> tuple[float, ...]:
        """Return a key that is smaller for rows further up. Rows without a value come last."""
        by_rank = math.inf if row.mean_rank is None else row.mean_rank
        if self.sort == MODEL:
            return 0.0, 0.0
        if position is not None:
            cell = row.cells[position]
            value = _value(cell) if cell and cell.estimate else None
            done = cell is not None and cell.state == "complete"
            return (0.0 if done else 1.0, math.inf if value is None else -value)
        if self.sort == MEAN:
            return math.inf if row.pooled is None else -row.pooled.value, by_rank
        if self.sort in MEASURES:
            measured = row.measures[self.sort]
            if measured is None:
                return math.inf, by_rank
            return -measured if MEASURES[self.sort].larger_is_better else measured, by_rank
        ranks = _ranks(row)
        return by_rank, -len(ranks), sum(ranks)


def rank(values: Mapping[ModelKey, float]) -> dict[ModelKey, float]:
    """Return the rank of every value, 1 for the largest. Equal values share the mean rank."""
    counts = Counter(values.values())
    ranks: dict[float, float] = {}
    before = 0
    for value in sorted(counts, reverse=True):
        ranks[value] = before + (counts[value] + 1) / 2
        before += counts[value]
    return {model: ranks[value] for model, value in values.items()}


def _value(cell: board.Cell) -> float:
    """Return pass@1 without the last digits, in which equal scores can differ by rounding."""
    return round(cell.estimate.value, 12) if cell.estimate else math.nan


def _ranks(row: board.Row) -> list[float]:
    return [cell.rank for cell in row.cells if cell and cell.rank is not None]


def _quality(row: board.Row, position: int | None) -> float | None:
    """Return pass@1 in the column that is sorted by, or its mean over all columns."""
    cells = row.cells if position is None else row.cells[position : position + 1]
    values = [_value(cell) for cell in cells if cell and cell.state == "complete"]
    return sum(values) / len(values) if len(values) == len(cells) else None


def _pool(row: board.Row) -> Estimate | None:
    """Return the mean over all columns; None if one of them has no complete result."""
    complete = [cell for cell in row.cells if cell and cell.state == "complete"]
    if len(complete) < len(row.cells):
        return None
    scores = [cell.estimate for cell in complete if cell.estimate]
    originals = [
        {problem.cluster or problem.task_id for problem in cell.result.problems}
        for cell in complete
        if cell.result
    ]
    return pool(scores, originals)


def _describe_settings(entry: RunEntry) -> str:
    """Return how a run was generated. Results of earlier versions have it outside the protocol."""
    protocol = entry.protocol
    config = entry.result.config if entry.result else ConfigResult(
        protocol.decoding or Decoding(), protocol.asking, num_samples=protocol.n_samples,
        prompt_strategy=protocol.prompt_strategy,
    )  # fmt: skip
    return ", ".join(describe_settings(config, protocol))


def _compare_coverage(cells: dict[ModelKey, board.Cell]) -> dict[ModelKey, board.Cell]:
    """Return the cells, with the number of problems that only other complete results score."""
    unscorable = {
        model: cell.result.results.unscorable.keys()
        for model, cell in cells.items()
        if cell.result and cell.state == "complete"
    }
    common = set.intersection(*map(set, unscorable.values())) if unscorable else set()
    return {
        model: replace(cell, unscored=len(unscorable.get(model, common) - common))
        for model, cell in cells.items()
    }


def _describe_difference(first: BlockEntries, other: BlockEntries) -> str:
    """Return the fields of the protocol in which a block differs from the first one.

    Settings of recorded completions are not known, so they are not compared with those of runs.
    """
    common = [name for name in other if name in first]
    name, skipped = (common[0], ()) if common else (next(iter(other)), OF_BENCHMARK)
    base = first[name if common else next(iter(first))][0].protocol
    protocol = other[name][0].protocol
    if bool(base.origin) != bool(protocol.origin):
        return ""
    fields = differences(base.to_json(), protocol.to_json())
    wanted = [one for one in fields if one[0].partition(".")[0] not in (*skipped, "origin")]
    return describe_differences(wanted)


def _baseline_rows(
    scores: Sequence[board.Baseline], columns: Sequence[board.Column]
) -> tuple[board.BaselineRow, ...]:
    """Return a row for every model of the baselines that has a score in one of the columns."""
    benchmarks = [column.benchmark for column in columns]
    rows: dict[tuple[str, str], list[board.Baseline]] = {}
    for one in scores:
        if one.benchmark in benchmarks:
            rows.setdefault((one.kind, one.model), []).append(one)
    return tuple(
        board.BaselineRow(
            model=model,
            kind=kind,
            sources=tuple(dict.fromkeys(one.source for one in baselines if one.source)),
            scores=tuple(
                {one.benchmark: one.score for one in baselines}.get(b) for b in benchmarks
            ),
        )
        for (kind, model), baselines in rows.items()
    )
