"""Compare results, rank them, and plan new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from assay import runs
from assay.api.opening import load_benchmark, load_run
from assay.data.arguments import checked
from assay.data.writing import write_whole
from assay.errors import UsageError
from assay.progress import Reporter, Silent
from assay.quality.comparison_plan import Plan
from assay.quality.comparison_plan import plan as plan_evaluation
from assay.report.leaderboard import Baseline, Leaderboard, ModelFacts, find_sizes
from assay.report.leaderboard import leaderboard as build_leaderboard
from assay.report.leaderboard.measures import NEED_FILES
from assay.report.pages.site import build_report
from assay.runs import Comparison, ComparisonFamily, Result, RunEntry
from assay.scoring.decisions import MARGIN
from assay.scoring.power import POWER

if TYPE_CHECKING:
    from assay.report.view import View

SILENT = Silent()


@checked
def compare(
    a: Result | str | Path,
    b: Result | str | Path,
    *,
    margin: float = MARGIN,
    force: bool = False,
    unpaired: bool = False,
) -> Comparison:
    """Compare result ``b`` with result ``a``: better, worse, equivalent or undecided.

    ``margin`` is the largest difference that counts as equivalent, as a share: 0.02 is two points.
    Raise UsageError if the protocols differ; ``force`` compares them anyway, and the comparison
    lists the differences. ``unpaired`` compares runs of different problems.
    """
    first, second = (x if isinstance(x, Result) else load_run(x) for x in (a, b))
    comparison = runs.compare(first, second, margin=margin, unpaired=unpaired)
    _check_protocols(comparison, force=force)
    return comparison


@checked
def compare_family(
    baseline: Result | str | Path,
    others: Sequence[Result | str | Path],
    *,
    margin: float = MARGIN,
    force: bool = False,
) -> ComparisonFamily:
    """Compare several results with a baseline, with one chance of error for all comparisons."""
    first, *rest = (x if isinstance(x, Result) else load_run(x) for x in (baseline, *others))
    if not rest:
        raise UsageError("compare_family: has no result to compare with the baseline. Give one.")
    family = runs.compare_family(first, rest, margin=margin)
    for member in family.members:
        _check_protocols(member.comparison, force=force)
    return family


def _check_protocols(comparison: Comparison, *, force: bool) -> None:
    if comparison.protocol_differences and not force:
        names = ", ".join(name for name, _, _ in comparison.protocol_differences)
        raise UsageError(
            f"{comparison.run_b}: its protocol differs from that of {comparison.run_a} ({names}). "
            "Compare runs of one protocol, or pass force=True."
        )


@checked
def view(
    results: Result | str | Path = "results",
    *,
    port: int = 0,
    height: int = 800,
    data_dir: str | Path | None = None,
    reporter: Reporter = SILENT,
) -> View:
    """Serve the report pages of a results folder on this machine, live. A notebook shows them.

    ``results`` is a folder, or a result whose page is shown first. Port 0 is any free one;
    ``height`` is that of the frame, in pixels. The server ends with the view's ``close``, or with
    Python.
    """
    from assay.report.view import open_view  # a server, which few need

    return open_view(results, port=port, height=height, data_dir=data_dir, reporter=reporter)


@checked
def plan(
    benchmark: str,
    *,
    difference: float = 0.03,
    power: float = POWER,
    pilots: Sequence[Result | str | Path] = (),
    data_dir: str | Path | None = None,
    reporter: Reporter = SILENT,
) -> Plan:
    """Return how many problems and samples show a difference, and what they cost.

    ``difference`` is a share: 0.03 is three points. Up to two ``pilots`` replace assumptions.
    """
    results = [x if isinstance(x, Result) else load_run(x) for x in pilots]
    problems = len(load_benchmark(benchmark, data_dir=data_dir, reporter=reporter).problems)
    return plan_evaluation(benchmark, problems, difference, power, results)


@checked
def write_report(
    references: str | Path | Iterable[Result | str | Path] = (),
    output: str | Path = "report.html",
    *,
    results_dir: str | Path = "results",
    title: str = "",
    data_dir: str | Path | None = None,
    reporter: Reporter = SILENT,
    warn: Callable[[str], None] | None = None,
) -> Path:
    """Write one HTML file with runs, their samples, comparisons and a leaderboard.

    References are results, names, folders or files of runs, names of suites, results folders, and
    files of measurements. Without one, everything in ``results_dir`` is shown. ``warn`` gets a
    line for everything that is left out because it cannot be read; by default, the reporter does.
    Return the file.
    """
    sources = [references] if isinstance(references, str | Path) else list(references)
    names = [str(one.path if isinstance(one, Result) else one) for one in sources]
    document = build_report(
        names,
        results_dir=Path(results_dir),
        title=title,
        data_dir=Path(data_dir) if data_dir else None,
        reporter=reporter,
        warn=warn,
    )
    write_whole(Path(output), document)
    return Path(output)


@checked
def leaderboard(
    results: str | Path | Iterable[Result | RunEntry | str | Path] = "results",
    *,
    sort: str = "rank",
    columns: Sequence[str] = (),
    pareto: str = "",
    dollars_per_hour: float = 0.0,
    baselines: Iterable[Baseline] = (),
    facts: Mapping[str, ModelFacts] | None = None,
    reporter: Reporter = SILENT,
) -> Leaderboard:
    """Put results side by side: one row per model, one column per benchmark.

    ``results`` is a results folder, or a list of results, entries of the history, results files,
    folders of runs and results folders. The other arguments are the options of ``assay
    leaderboard``. ``facts`` are sizes and speeds by name of the model, or by digest of its weights;
    sizes are also read from the model's file if it is still there. Runs of different protocols are
    in different blocks.
    """
    sources = [results] if isinstance(results, str | Path) else list(results)
    names = [str(one) for one in sources if isinstance(one, str | Path)]
    entries = [one for one in sources if isinstance(one, RunEntry)]
    entries += runs.collect_runs(names, Path("results"), reporter.note) if names else []
    finished = [one for one in sources if isinstance(one, Result)]
    finished += [entry.result for entry in entries if entry.result]
    known = dict(facts or {})
    if NEED_FILES & {*columns, sort, pareto}:
        identities = [one.model_identity for one in finished if one.model_identity]
        for weights, sizes in find_sizes(identities).items():
            known[weights] = known.get(weights, sizes).fill(sizes)
    return build_leaderboard(
        finished,
        unfinished=[entry for entry in entries if entry.result is None],
        baselines=baselines,
        facts=known,
        sort=sort,
        columns=columns,
        pareto=pareto,
        dollars_per_hour=dollars_per_hour,
    )
