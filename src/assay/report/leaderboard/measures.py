"""The optional columns of a leaderboard: sizes, speed, memory, cost, groups of equal models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from assay.report.leaderboard.board import Row
from assay.runs import Result
from assay.runs.compare import tally_problems
from assay.scoring.comparison import group_verdicts

GIGABYTE = 1e9
GROUP = "group"  # letters in a column after each score
# All pairs are tested for it. On HumanEval, 50 models (1,225 pairs) take 2 s of CPU time.
MOST_MODELS = 50
MEAN = "mean"  # the mean score over all benchmarks of a block, with its interval


@dataclass(frozen=True, slots=True)
class LeaderboardMeasure:
    """A number for each model of a block. ``find`` also gets the price of an hour in dollars."""

    heading: str
    meaning: str  # for the notes
    find: Callable[[Row, float], float | None]
    show: Callable[[float], str]
    larger_is_better: bool = False


def list_results(row: Row) -> list[Result]:
    """Return the finished results of a row."""
    return [cell.result for cell in row.cells if cell and cell.result]


def _gigabytes(number: int | None) -> float | None:
    return None if number is None else number / GIGABYTE


def _run_speed(row: Row, _: float) -> float | None:
    """Return the mean rate of a sequence in the batch that its run used."""
    results = list_results(row)
    seconds = sum(result.timing.inference_s for result in results)
    tokens = sum(result.timing.tokens_generated for result in results)
    return tokens / seconds if seconds and tokens else None


def _cost(row: Row, dollars_per_hour: float) -> float | None:
    """Return the recorded price, or else the price of the time that generating took."""
    costs = [
        _cost_of(result, row.facts.tokens_per_s, dollars_per_hour) for result in list_results(row)
    ]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


def _cost_of(result: Result, tokens_per_s: float | None, dollars_per_hour: float) -> float | None:
    timing = result.timing
    if timing.cost is not None:
        return timing.cost
    if not dollars_per_hour or not timing.tokens_generated:
        return None
    if tokens_per_s:
        seconds = timing.tokens_generated / tokens_per_s
    else:
        parallel = result.environment.engine.get("parallel")
        at_once = parallel if isinstance(parallel, int) and parallel > 0 else 1
        seconds = timing.generating_s or timing.inference_s / at_once
    return seconds / 3600 * dollars_per_hour


def _per_gigabyte(row: Row, _: float) -> float | None:
    size = row.facts.file_bytes
    return None if row.quality is None or not size else 100 * row.quality / (size / GIGABYTE)


MEASURES: dict[str, LeaderboardMeasure] = {
    "size": LeaderboardMeasure(
        "GB", "GB: size of the model's files in gigabytes (10^9 bytes).",
        lambda row, _: _gigabytes(row.facts.file_bytes), lambda value: f"{value:.2f}",
    ),
    "params": LeaderboardMeasure(
        "params B", "params B: number of weights in billions.",
        lambda row, _: None if row.facts.parameters is None else row.facts.parameters / 1e9,
        lambda value: f"{value:.2f}",
    ),
    "bits": LeaderboardMeasure(
        "bits/weight", "bits/weight: bits per weight, the median over all weights.",
        lambda row, _: row.facts.bits_per_weight, lambda value: f"{value:.2f}",
    ),
    "speed": LeaderboardMeasure(
        "tokens/s", "tokens/s: highest throughput that `assay bench` measured.",
        lambda row, _: row.facts.tokens_per_s, lambda value: f"{value:,.1f}",
        larger_is_better=True,
    ),
    "run-speed": LeaderboardMeasure(
        "tokens/s per sequence",
        "tokens/s per sequence: mean over the runs shown, each in its own batch size.",
        _run_speed, lambda value: f"{value:,.1f}", larger_is_better=True,
    ),
    "memory": LeaderboardMeasure(
        "memory GB",
        "memory GB: highest use that `assay bench` measured, on the GPU if it used one.",
        lambda row, _: _gigabytes(row.facts.memory_bytes), lambda value: f"{value:.2f}",
    ),
    "cost": LeaderboardMeasure(
        "cost $",
        "cost $: recorded price of the runs shown, or the price of the time to generate them: by "
        "`assay bench`, or else as recorded. Of runs by earlier versions, it is the least by the "
        "batch size.",
        _cost, lambda value: f"{value:.4f}",
    ),
    "per-gb": LeaderboardMeasure(
        "points/GB", "points/GB: pass@1 in points per gigabyte of the model's files.",
        _per_gigabyte, lambda value: f"{value:.1f}", larger_is_better=True,
    ),
}  # fmt: skip
NEED_FILES = {"size", "params", "bits", "per-gb"}  # computed from the model's files
COLUMNS = (*MEASURES, GROUP, MEAN)
AGAINST = ("size", "params", "bits", "speed", "run-speed", "memory", "cost")  # for a Pareto mark


def group_by_tests(results: Mapping[str, Result]) -> Mapping[str, str]:
    """Return letters for models that cannot be distinguished: paired tests of all pairs, by Holm.

    There are no letters for one model, and none for more than ``MOST_MODELS``.
    """
    if not 1 < len(results) <= MOST_MODELS:
        return {}
    tables = {name: list(tally_problems(result).values()) for name, result in results.items()}
    return group_verdicts(tables).letters


def weigh(row: Row, name: str) -> tuple[float, float] | None:
    """Return the quality of a row and its measure, larger is better, or None if unknown."""
    measured = row.measures[name]
    if row.quality is None or measured is None:
        return None
    return row.quality, measured if MEASURES[name].larger_is_better else -measured


def mark_pareto(points: Sequence[tuple[float, float] | None]) -> list[bool]:
    """Return which points no other point dominates. Larger is better in both coordinates.

    A point dominates another if it is at least as good in both and better in one.
    """
    order = sorted({point for point in points if point}, reverse=True)
    front: set[tuple[float, float]] = set()
    highest = float("-inf")
    for point in order:  # by the first coordinate, the best first; then by the second
        if point[1] > highest:
            front.add(point)
            highest = point[1]
    return [point in front for point in points]
