"""The types of a leaderboard. ``build`` makes one from results, ``formats`` render it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from assay.errors import UsageError
from assay.registry import Registry
from assay.runs import Result
from assay.types import Estimate

State = Literal["complete", "incomplete", "unfinished"]
# Letters for the models that cannot be distinguished, from the complete results of one column.
GroupModels = Callable[[Mapping[str, Result]], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Baseline:
    """A score that assay did not measure: a published one, or a target. It has no protocol."""

    benchmark: str
    model: str  # of a target: its name
    score: float  # between 0 and 1
    source: str = ""
    kind: Literal["baseline", "target"] = "baseline"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The size and speed of a model. A fact that is None is not known."""

    file_bytes: int | None = None
    parameters: int | None = None
    bits_per_weight: float | None = None
    tokens_per_s: float | None = None  # highest throughput that was measured
    memory_bytes: int | None = None  # highest use while it ran, on the GPU if it ran there

    def fill(self, other: ModelFacts) -> ModelFacts:
        """Return these facts, with the other's where one is not known."""
        unknown = [f.name for f in fields(self) if getattr(self, f.name) is None]
        return replace(self, **{name: getattr(other, name) for name in unknown})


@dataclass(frozen=True, slots=True)
class Cell:
    """The run that stands for a model on a benchmark. ``others`` are not shown."""

    run: str
    timestamp: str
    result: Result | None  # none: the run is not finished
    others: int = 0  # more runs of the same model, benchmark and protocol
    unscored: int = 0  # problems that are unscorable in this run, but not in others of the column
    rank: float | None = None  # among the complete results of the column; ties share their mean
    best: bool = False
    group: str = ""  # models of a column that share a letter cannot be distinguished

    @property
    def estimate(self) -> Estimate | None:
        """pass@1, if anything was judged and the file has numbers for it."""
        one = self.result.pass_at.get(1) if self.result else None
        return one if one and all(map(math.isfinite, (one.value, *one.interval))) else None

    @property
    def state(self) -> State:
        """Return whether the score covers everything that was requested."""
        if self.result is None:
            return "unfinished"
        complete = self.result.complete and self.estimate and not self.unscored
        return "complete" if complete else "incomplete"


@dataclass(frozen=True, slots=True)
class Column:
    """A benchmark, judged by one protocol."""

    benchmark: str  # such as ``humaneval``, or ``humaneval[:10]``
    protocol: str  # hash; of recorded completions: without their origin


@dataclass(frozen=True, slots=True)
class Row:
    """A model of a block, with a cell or None for every column."""

    model: str
    cells: tuple[Cell | None, ...]
    facts: ModelFacts = ModelFacts()
    mean_rank: float | None = None  # none: not all columns have a complete result
    quality: float | None = None  # pass@1, or its mean over all columns
    pooled: Estimate | None = None  # the mean over all columns with its interval
    best_pooled: bool = False
    measures: Mapping[str, float | None] = field(default_factory=dict)  # by the name of the column
    pareto: bool = False


@dataclass(frozen=True, slots=True)
class BaselineRow:
    """Scores that are not ours, with a score or None for every column."""

    model: str
    kind: str
    sources: tuple[str, ...]
    scores: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class LeaderboardBlock:
    """Models whose scores are comparable, column by column."""

    settings: str  # such as ``standard, chat, greedy, n=1``
    differences: str  # to the first block
    recorded: bool  # completions were generated elsewhere, in ways that are not known
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    baselines: tuple[BaselineRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Blocks of comparable results, the largest first."""

    blocks: tuple[LeaderboardBlock, ...]
    measures: tuple[str, ...] = ()  # optional columns, in the order of their display
    pareto: str = ""  # the measure that quality is weighed against
    groups: bool = False  # whether letters are shown
    means: bool = False  # whether the mean over all columns is shown
    unused: tuple[str, ...] = ()  # benchmarks of baselines that no block has

    def render(self, form: str = "table") -> str:
        """Return the leaderboard in a format: table, markdown, csv, json, latex, html, and others.

        Raise UsageError for an unknown format, or one that cannot hold several blocks.
        """
        return renderers.get(form)(self)


# Adding a format is adding a file to ``formats``.
renderers: Registry[Callable[[Leaderboard], str]] = Registry(
    "leaderboard format", "assay.report.leaderboard.formats", plug_ins=False
)


def only_block(board: Leaderboard, form: str) -> LeaderboardBlock:
    """Return the block of a format that has no place for protocols. Raise UsageError for others."""
    if len(board.blocks) != 1:
        raise UsageError(
            f"--format {form}: holds one protocol per benchmark, and there are "
            f"{len(board.blocks)} blocks that are not comparable. Choose one with --block."
        )
    return board.blocks[0]
