"""Plot the scores of runs over time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime

from assay.errors import UsageError
from assay.report.leaderboard.entries import comparable_key
from assay.report.plots import Drawing, Moment, Track, draw_history
from assay.runs import RunEntry


def draw_runs(runs: Sequence[RunEntry]) -> Drawing:
    """Return pass@1 over time on one benchmark. Runs are joined only if they are comparable."""
    finished = [run for run in runs if run.result and _moment(run)]
    names = sorted({f"{run.benchmark}{run.selection}" for run in finished})
    if not finished:
        raise UsageError("--plot: no run has a score. Choose finished runs.")
    if len(names) > 1:
        raise UsageError(
            f"--plot: the runs are of several benchmarks ({', '.join(names)}). "
            "Choose one with --benchmark."
        )
    tracks: dict[tuple[str, str], list[Moment]] = defaultdict(list)
    for run in finished:
        if moment := _moment(run):
            tracks[run.model, comparable_key(run.protocol)].append(moment)
    models = [model for model, _ in tracks]
    return draw_history(
        tuple(
            Track(model if models.count(model) == 1 else f"{model} ({key[:8]})", tuple(moments))
            for (model, key), moments in tracks.items()
        ),
        name=names[0],
    )


def _moment(run: RunEntry) -> Moment | None:
    one = run.result.pass_at.get(1) if run.result else None
    if one is None or not all(map(math.isfinite, (one.value, one.low, one.high))):
        return None
    try:
        time = datetime.fromisoformat(run.timestamp)
    except ValueError:
        return None
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return Moment(time.timestamp(), one.value, one.low, one.high, run.run)
