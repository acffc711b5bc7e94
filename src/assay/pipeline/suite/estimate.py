"""Estimate what a suite will do: requests, tokens and time, from earlier runs and measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay import models
from assay.runs import Result, list_runs
from assay.runs.stores.bench_files import read_bench
from assay.scoring.power import usually_detectable

if TYPE_CHECKING:
    from assay.pipeline.suite.plan import ReadyRun

BENCH_FILE = "throughput.json"  # in the results folder, as `make bench` writes it
ENOUGH = 16  # completions that show the pace of a benchmark


@dataclass(frozen=True, slots=True)
class CompletionPace:
    """Tokens and seconds of one completion, on average."""

    prompt_tokens: float
    new_tokens: float
    seconds: float | None  # None: unknown
    source: str  # the run or file that it comes from


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """One evaluation: its requests, and an estimate of what they take. None: unknown."""

    model: str
    benchmark: str
    strategy: str
    decoding: str
    requests: int
    done: int  # of the requests, by an earlier run or in the store
    prompt_tokens: int | None
    new_tokens: int  # at most, if there is no source
    seconds: float | None
    source: str = ""
    detectable: float | None = None  # smallest difference that the samples show; None: none at all


@dataclass(frozen=True, slots=True)
class SuitePlan:
    """The evaluations of a suite in their order."""

    rows: tuple[PlannedRow, ...]

    @property
    def requests(self) -> int:
        return sum(row.requests - row.done for row in self.rows)

    @property
    def seconds(self) -> float | None:
        """The time of all, or None if the time of one is unknown."""
        known = [row.seconds for row in self.rows if row.seconds is not None]
        return sum(known) if len(known) == len(self.rows) else None


def estimate_suite(runs: Sequence[ReadyRun]) -> SuitePlan:
    """Return what the evaluations take, as far as earlier runs and measurements show."""
    earlier: dict[Path, list[Result]] = {}
    planned: set[str] = set()  # keys of requests that an evaluation before will generate
    rows = []
    for run in runs:
        folder = run.entry.config.results_dir
        if folder not in earlier:
            entries = list_runs(folder) if folder.is_dir() else []
            earlier[folder] = [entry.result for entry in entries if entry.result]
        rows.append(_estimate(run, earlier[folder], planned))
    return SuitePlan(tuple(rows))


def _estimate(run: ReadyRun, earlier: Sequence[Result], planned: set[str]) -> PlannedRow:
    plan, identity = run.plan, run.plan.model.identity
    requests, problems = len(plan.keys), len(plan.selected.benchmark.problems)
    done = requests if isinstance(plan.model, models.RecordedModel) else _count_done(run, planned)
    pace = find_pace(earlier, identity.weights_sha256, run.benchmark)
    if pace is None:
        path = plan.config.results_dir / BENCH_FILE
        pace = read_pace(path, identity.weights_sha256, plan.decoding.max_tokens)
    left = requests - done
    names = (
        identity.name, run.benchmark + plan.selected.label, run.entry.config.prompt_strategy,
        run.entry.decoding.name,
    )  # fmt: skip
    shows = usually_detectable(problems, requests // problems)
    if left == 0:
        return PlannedRow(*names, requests, done, 0, 0, 0.0, detectable=shows)
    if pace is None:
        most = left * plan.decoding.max_tokens
        return PlannedRow(*names, requests, done, None, most, None, detectable=shows)
    seconds = None if pace.seconds is None else round(left * pace.seconds, 1)
    return PlannedRow(
        *names, requests, done, round(left * pace.prompt_tokens), round(left * pace.new_tokens),
        seconds, pace.source, shows,
    )  # fmt: skip


def _count_done(run: ReadyRun, planned: set[str]) -> int:
    """Return how many requests are answered, or will be by an evaluation before this one."""
    store = run.plan.open_store(set())
    if store is None:
        return 0
    keys = [store.key(request) for request in run.plan.requests(run.plan.keys)]
    done = 0
    for key in keys:
        done += key in planned or store.has(key)
        planned.add(key)
    return done


def find_pace(earlier: Iterable[Result], weights: str, benchmark: str) -> CompletionPace | None:
    """Return the pace of the model's run with the most completions, if possible on the benchmark.

    A run that took most of its completions from the store says little about the rest. Requests
    overlap: their times are divided by the batch size if a run did not record its own time.
    """

    def informative(result: Result) -> tuple[bool, int]:
        count = _generated(result)
        return (count >= ENOUGH and result.benchmark == benchmark, count)

    of_model = [
        result
        for result in earlier
        if result.model_identity is not None
        and result.model_identity.weights_sha256 == weights
        and _generated(result) > 0
        and result.timing.inference_s > 0
    ]
    run = max(of_model, key=informative, default=None)
    if run is None:
        return None
    timing = run.timing
    count = _generated(run)
    parallel = run.environment.engine.get("parallel")
    at_once = min(parallel, count) if isinstance(parallel, int) and parallel > 0 else 1
    return CompletionPace(
        timing.prompt_tokens / count, timing.tokens_generated / count,
        (timing.generating_s or timing.inference_s / at_once) / count, run.run,
    )  # fmt: skip


def _generated(result: Result) -> int:
    """Return how many samples the model was asked for in this run."""
    return result.results.samples - result.timing.reused


def read_pace(path: Path, weights: str, max_tokens: int) -> CompletionPace | None:
    """Return the pace that `assay bench` measured for this model, or None.

    Completions are taken to be as long as they may be, so the time is an upper bound.
    """
    bench = read_bench(path)
    if bench is None or bench.weights != weights or not bench.highest_rate:
        return None
    return CompletionPace(0.0, max_tokens, max_tokens / bench.highest_rate, path.name)
