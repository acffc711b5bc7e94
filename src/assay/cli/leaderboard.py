"""``assay leaderboard``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay import api
from assay.cli._groups import DATA, OUTPUT, GroupedCommand, option
from assay.cli._options import (
    ANY_PATH,
    NumberRange,
    list_choices,
    plot_option,
    results_dir,
    save_plot,
)
from assay.cli._output import LeftOut, Styled, echo
from assay.data.reading import FileReader, parse_json
from assay.data.writing import write_whole
from assay.data.yaml_files import parse_yaml
from assay.errors import RunError, UsageError
from assay.report import figures
from assay.report.leaderboard import Leaderboard, ModelFacts, parse_baselines, parse_facts
from assay.report.leaderboard.formats.text import table_lines
from assay.report.leaderboard.measures import AGAINST, COLUMNS
from assay.runs import RunFilter, collect_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FORMATS = ("table", "markdown", "csv", "json", "latex", "html", "evalplus", "apr-leaderboard")
BASELINES = FileReader(
    UsageError, "Give a YAML or JSON file as in docs/guides/leaderboard.md", 1 << 24
)


@click.command(cls=GroupedCommand)
@click.argument("results", nargs=-1)
@results_dir
@option(
    "--format",
    "Output format. evalplus and apr-leaderboard write the files of those leaderboards.", "form",
    group=OUTPUT, of="leaderboard", type=click.Choice(FORMATS), default="table",
)  # fmt: skip
@option(
    "--sort",
    "Column to sort by: rank (the mean rank), model, a benchmark or an optional column.",
    group=OUTPUT,
    default="rank",
)
@option(
    "--columns", f"Optional columns: {list_choices(COLUMNS)}.", group=OUTPUT, default="",
    metavar="NAME,…",
)  # fmt: skip
@option(
    "--pareto",
    "Mark the models that no other model beats in both quality and this column.",
    group=OUTPUT,
    type=click.Choice(AGAINST),
)
@option(
    "--dollars-per-hour", "Price of the machine in dollars per hour, for the column cost.",
    group=OUTPUT, type=NumberRange(min=0), default=0.0,
)  # fmt: skip
@option(
    "--baselines",
    "File with published scores or targets, marked as not measured by assay. Can be repeated.",
    "baseline_files", group=DATA, type=ANY_PATH, multiple=True,
)  # fmt: skip
@option(
    "--facts",
    "Output of `assay bench`, or a file with sizes and speeds by model. Can be repeated.",
    "fact_files", group=DATA, type=ANY_PATH, multiple=True,
)  # fmt: skip
@option(
    "--block",
    "Print only the block with this number. Default: all blocks.",
    group=OUTPUT,
    type=click.IntRange(min=1),
)
@option(
    "--model", "Use only models whose name contains this text.", group=DATA, of="leaderboard",
    default="",
)  # fmt: skip
@option("--benchmark", "Use only runs of this benchmark.", group=DATA, of="leaderboard", default="")
@option(
    "--output", "File to write instead of printing.", group=OUTPUT, of="leaderboard", type=ANY_PATH
)
@plot_option("problems by model, or with --pareto quality by that column")
def leaderboard(
    results: tuple[str, ...],
    results_dir: Path,
    form: str,
    columns: str,
    pareto: str | None,
    baseline_files: tuple[Path, ...],
    fact_files: tuple[Path, ...],
    block: int | None,
    model: str,
    benchmark: str,
    output: Path | None,
    plot_path: Path | None,
    **settings: Any,
) -> None:
    """Compare many models on many benchmarks: one row per model, one column per benchmark.

    RESULTS are results folders, results files, or names of runs as listed by `assay history`; all
    of --results-dir by default. Runs of different protocols are never in one block. Of several runs
    of a model, the newest complete one is shown.

    \b
    Examples:
      assay leaderboard --results-dir overnight
      assay leaderboard overnight --sort humaneval --format html --output board.html
      assay leaderboard --columns size,bits,per-gb --pareto size
    """
    left_out = LeftOut()
    every = collect_runs(results, results_dir, left_out.warn)
    runs = list(filter(RunFilter(model, benchmark).admits, every))
    if not runs:
        why = "no runs. Start one with `assay eval`."
        if every:
            why = f"none of the {len(every)} runs match the filters. Drop a filter."
        raise RunError(f"{', '.join(results or (str(results_dir),))}: {why}")
    names = [name.strip() for name in columns.split(",") if name.strip()]
    board = api.leaderboard(
        runs,
        columns=[*names, *(["params"] if form == "evalplus" and "params" not in names else [])],
        pareto=pareto or "",
        baselines=[one for path in baseline_files for one in _read(path, parse_baselines)],
        facts=_read_facts(fact_files),
        **settings,
    )
    if block is not None:
        if block > (count := len(board.blocks)):
            raise UsageError(f"--block {block}: there are only {count}. Give a lower one.")
        board = replace(board, blocks=board.blocks[block - 1 : block])
    save_plot(plot_path, lambda: figures.draw_board(board))
    _print(board, form, output)
    left_out.exit_if_any()


def _read(path: Path, parse: Callable[[Any], Any]) -> Any:
    """Return the parsed content of a YAML or JSON file."""
    text = BASELINES.read_text(path)
    with BASELINES.reporting(path):
        if path.suffix == ".json":
            return parse(parse_json(text))
        documents = parse_yaml(text)
        if len(documents) != 1:
            raise ValueError(f"has {len(documents)} documents instead of one")
        return parse(documents[0])


def _read_facts(paths: Sequence[Path]) -> dict[str, ModelFacts]:
    by_model: dict[str, ModelFacts] = {}
    for path in paths:
        for model, facts in _read(path, parse_facts).items():
            by_model[model] = facts.fill(by_model.get(model, ModelFacts()))
    return by_model


def _print(board: Leaderboard, form: str, output: Path | None) -> None:
    if output is not None:
        write_whole(output, board.render(form))
        echo(str(output))
    elif form == "table":
        for line in table_lines(board):
            echo(tuple(Styled(span.text, span.colour, bold=span.bold) for span in line))
    else:
        echo(*board.render(form).splitlines())
