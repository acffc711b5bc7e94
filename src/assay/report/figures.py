"""Plots of results: what ``--plot`` writes and pages show."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from assay.data.writing import write_whole
from assay.errors import RunError, UsageError, install_hint
from assay.report import plots
from assay.report.leaderboard import Leaderboard
from assay.report.leaderboard.board import Cell, LeaderboardBlock, Row
from assay.report.leaderboard.entries import comparable_key
from assay.report.leaderboard.measures import MEASURES
from assay.report.plots.axes import WIDTH
from assay.report.plots.svg import FONT
from assay.report.text import benchmark_name
from assay.runs import Comparison, ComparisonFamily, Result, RunEntry

SVG, PNG = ".svg", ".png"
ZOOM = 2  # pixels per unit, for screens of high resolution
PROBE = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">{}</svg>'


def check_plot_file(path: Path) -> None:
    """Raise an error for a file that cannot be written as a plot. Call it before long work."""
    if path.suffix.lower() not in (SVG, PNG):
        raise UsageError(f"{path}: is not a plot file. Give a name that ends with .svg or .png.")
    if path.suffix.lower() == PNG:
        _render(PROBE.format(""))
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent}: is not a folder. Create it, or choose another place.")


def write_plot(path: Path, drawing: plots.Drawing) -> None:
    """Write a plot as SVG, or as PNG if the file's name ends so and a converter is installed."""
    check_plot_file(path)
    if path.suffix.lower() == SVG:
        write_whole(path, drawing.standalone())
        return
    word = f'<text y="15" font-family="{FONT}">x</text>'
    if _render(PROBE.format(word)) == _render(PROBE.format("")):
        raise RunError(
            "--plot: this machine has no fonts for PNG files. Install some, such as the package "
            "fonts-dejavu-core, or write an .svg file."
        )
    write_whole(path, _render(drawing.flatten()))


def _render(svg: str) -> bytes:
    try:
        import resvg_py
    except ImportError as error:
        raise UsageError(
            "--plot: PNG files need the package resvg-py. "
            f"Install it with {install_hint('report')}, or write an .svg file."
        ) from error
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=ZOOM))


def draw_board(board: Leaderboard) -> plots.Drawing:
    """Return a plot of the first block: quality against ``board.pareto``, or problems by model."""
    if not board.blocks:
        raise UsageError("--plot: the leaderboard is empty. Choose other runs.")
    block = board.blocks[0]
    if board.pareto:
        return draw_trade_off(block, board.pareto)
    names = [column.benchmark for column in block.columns]
    data = map_problems(names, [(row.model, row.cells) for row in block.rows])
    if not data.problems:
        raise UsageError("--plot: no problem was judged. Choose finished runs.")
    return plots.draw_heat_map(data)


def draw_trade_off(block: LeaderboardBlock, name: str) -> plots.Drawing:
    """Return quality against one of the optional columns, for the models that have both."""
    measure = MEASURES[name]
    dots = tuple(dot for row in block.rows if (dot := _dot(row, name)))
    if not dots:
        raise UsageError(f"--plot: no model has both a score and {name}. Give --facts.")
    title = f"Quality by {name} on {', '.join(column.benchmark for column in block.columns)}"
    score = "pass@1" if len(block.columns) == 1 else "mean of pass@1"
    return plots.draw_scatter(
        plots.Scatter(title, measure.heading, score, dots, measure.larger_is_better)
    )


def _dot(row: Row, name: str) -> plots.Dot | None:
    """Return a model's place. Only the score of a single benchmark has an interval."""
    value = row.measures.get(name)
    if value is None or value <= 0 or row.quality is None:
        return None
    cell = row.cells[0] if len(row.cells) == 1 else None
    low, high = cell.estimate.interval if cell and cell.estimate else (None, None)
    return plots.Dot(row.model, value, row.quality, low, high, row.pareto)


def map_problems(
    benchmarks: Sequence[str], rows: Sequence[tuple[str, Sequence[Cell | None]]]
) -> plots.HeatMap:
    """Return which model solves which problem: the share of its samples that pass.

    A row is the name of a model and its cells, one per benchmark.
    """
    shares = [
        {
            (name, problem.task_id): problem.passed / problem.n if problem.n else None
            for name, cell in zip(benchmarks, cells, strict=True)
            if cell and cell.result
            for problem in cell.result.problems
        }
        for _, cells in rows
    ]
    problems = dict.fromkeys(key for one in shares for key in one)
    return plots.HeatMap(
        tuple(task for _, task in problems),
        tuple(
            plots.HeatRow(model, tuple(map(one.get, problems)))
            for (model, _), one in zip(rows, shares, strict=True)
        ),
        f"Problems by model: {', '.join(benchmarks)}",
    )


def draw_comparison(
    comparison: Comparison, first: Result, second: Result, width: float = WIDTH
) -> plots.Drawing:
    """Return the difference of two results, for all problems together."""
    row = _difference(second.model, comparison, comparison.decision)
    title = f"{second.model} compared with {first.model} on {benchmark_name(second)}"
    level = comparison.interval.level
    forest = plots.Forest(first.model, (row,), margin=comparison.margin, level=level, title=title)
    return plots.draw_forest(forest, width)


def draw_family(
    family: ComparisonFamily, results: Sequence[Result], width: float = WIDTH
) -> plots.Drawing:
    """Return the differences of several results to a baseline, which is the first of them.

    Of models that have the same name, the runs are named too.
    """
    models = Counter(result.model for result in results[1:])
    rows = [
        _difference(
            r.model if models[r.model] == 1 else f"{r.model} ({r.run})", m.comparison, m.decision
        )
        for r, m in zip(results[1:], family.members, strict=True)
    ]
    one = family.members[0].comparison
    return plots.draw_forest(
        plots.Forest(results[0].model, tuple(rows), margin=one.margin, level=one.interval.level),
        width,
    )


def _difference(name: str, comparison: Comparison, decision: str) -> plots.Difference:
    return plots.Difference(
        name, comparison.difference, comparison.interval.low, comparison.interval.high, decision
    )


def draw_runs(runs: Sequence[RunEntry]) -> plots.Drawing:
    """Return pass@1 over time on one benchmark. Runs are joined only if they are comparable."""
    tracks: dict[tuple[str, str], list[plots.Point]] = defaultdict(list)
    names = set()
    for run in runs:
        if point := _point(run):
            names.add(f"{run.benchmark}{run.selection}")
            tracks[run.model, comparable_key(run.protocol)].append(point)
    if not names:
        raise UsageError("--plot: no run has a score. Choose finished runs.")
    if len(names) > 1:
        raise UsageError(
            f"--plot: the runs are of several benchmarks ({', '.join(sorted(names))}). "
            "Choose one with --benchmark."
        )
    models = Counter(model for model, _ in tracks)
    lines = [
        plots.Line(model if models[model] == 1 else f"{model} ({key[:8]})", tuple(points))
        for (model, key), points in tracks.items()
    ]
    return plots.draw_history(lines, name=names.pop())


def _point(run: RunEntry) -> plots.Point | None:
    one = run.result.pass_at.get(1) if run.result else None
    if one is None or not all(map(math.isfinite, (one.value, one.low, one.high))):
        return None
    try:
        time = datetime.fromisoformat(run.timestamp)
    except ValueError:
        return None
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return plots.Point(time.timestamp(), one.value, one.low, one.high, run.run)
