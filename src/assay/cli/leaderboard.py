"""``assay leaderboard``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay import api
from assay.cli._choices import list_choices
from assay.cli._groups import DATA, OUTPUT, GroupedCommand
from assay.cli._options import NumberRange, option, results_dir
from assay.cli._output import LeftOut, Styled, echo
from assay.cli._plots import plot_option, save_plot
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
    "--format", "form", group=OUTPUT, type=click.Choice(FORMATS), default="table",
    envvar="ASSAY_LEADERBOARD_FORMAT",
    help="Output format. evalplus and apr-leaderboard write the files of those leaderboards.",
)  # fmt: skip
@option(
    "--sort", group=OUTPUT, default="rank",
    help="Column to sort by: rank (the mean rank), model, a benchmark or an optional column.",
)  # fmt: skip
@option(
    "--columns", group=OUTPUT, default="", metavar="NAME,…",
    help=f"Optional columns: {list_choices(COLUMNS)}.",
)  # fmt: skip
@option(
    "--pareto", group=OUTPUT, type=click.Choice(AGAINST),
    help="Mark the models that no other model beats in both quality and this column.",
)  # fmt: skip
@option(
    "--dollars-per-hour", group=OUTPUT, type=NumberRange(min=0), default=0.0,
    help="Price of the machine in dollars per hour, for the column cost.",
)  # fmt: skip
@option(
    "--baselines", "baseline_files", group=DATA, type=click.Path(path_type=Path), multiple=True,
    help="File with published scores or targets, marked as not measured by assay. Can"
    " be repeated.",
)  # fmt: skip
@option(
    "--facts", "fact_files", group=DATA, type=click.Path(path_type=Path), multiple=True,
    help="Output of `assay bench`, or a file with sizes and speeds by model. Can be repeated.",
)  # fmt: skip
@option(
    "--block", group=OUTPUT, type=click.IntRange(min=1),
    help="Print only the block with this number. Default: all blocks.",
)  # fmt: skip
@option(
    "--model", group=DATA, default="", envvar="ASSAY_LEADERBOARD_MODEL",
    help="Use only models whose name contains this text.",
)  # fmt: skip
@option(
    "--benchmark", group=DATA, default="", envvar="ASSAY_LEADERBOARD_BENCHMARK",
    help="Use only runs of this benchmark.",
)  # fmt: skip
@option(
    "--output", group=OUTPUT, type=click.Path(path_type=Path), envvar="ASSAY_LEADERBOARD_OUTPUT",
    help="File to write instead of printing.",
)  # fmt: skip
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
    wanted = RunFilter(model, benchmark)
    left_out = LeftOut()
    found = collect_runs(results, results_dir, left_out.warn)
    runs = list(filter(wanted.admits, found))
    if not runs:
        raise RunError(_describe_nothing(len(found), results or (str(results_dir),)))
    names = [name.strip() for name in columns.split(",") if name.strip()]
    board = api.leaderboard(
        runs,
        columns=[*names, *(["params"] if form == "evalplus" and "params" not in names else [])],
        pareto=pareto or "",
        baselines=[one for path in baseline_files for one in _read(path, parse_baselines)],
        facts=_read_facts(fact_files),
        **settings,
    )
    board = _select_block(board, block)
    save_plot(plot_path, lambda: figures.draw_board(board))
    _print(board, form, output)
    left_out.exit_if_any()


def _describe_nothing(count: int, places: Sequence[str]) -> str:
    where = ", ".join(places)
    if count:
        return f"{where}: none of the {count} runs match the filters. Drop a filter."
    return f"{where}: no runs. Start one with `assay eval`."


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
    found: dict[str, ModelFacts] = {}
    for path in paths:
        for model, facts in _read(path, parse_facts).items():
            found[model] = facts.fill(found.get(model, ModelFacts()))
    return found


def _select_block(board: Leaderboard, number: int | None) -> Leaderboard:
    if number is None:
        return board
    if number > len(board.blocks):
        raise UsageError(f"--block {number}: there are only {len(board.blocks)}. Give a lower one.")
    return replace(board, blocks=board.blocks[number - 1 : number])


def _print(board: Leaderboard, form: str, output: Path | None) -> None:
    if output is not None:
        write_whole(output, board.render(form))
        echo(str(output))
    elif form == "table":
        for line in table_lines(board):
            echo(tuple(Styled(span.text, span.colour, bold=span.bold) for span in line))
    else:
        echo(*board.render(form).splitlines())
