"""``assay bench``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay import models
from assay.cli._groups import (
    MEASUREMENT,
    OUTPUT,
    GroupedCommand,
    add_options,
    field_options,
    option,
)
from assay.cli._option_sets import model_options
from assay.cli._options import FILE, as_json, plot_option, save_plot
from assay.cli._output import echo_result
from assay.cli._progress import ProgressDisplay
from assay.data import codec
from assay.data.writing import check_replaceable, write_whole
from assay.errors import RunError, UsageError
from assay.quality.bench import BenchConfig
from assay.quality.bench import bench as measure
from assay.report.plots import Line, Point, draw_speed_curves
from assay.report.text import table

if TYPE_CHECKING:
    from assay.quality.bench import BenchResult, Spread


def _batches(_context: click.Context, _parameter: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in value.split(","))
    except ValueError as error:
        raise UsageError(
            f"--batch: {value!r} is not a list of numbers. Give numbers such as 1,2,4."
        ) from error


@click.command(cls=GroupedCommand)
@click.argument("model", default=models.DEFAULT)
@add_options(
    *field_options(
        BenchConfig,
        MEASUREMENT,
        prompt_tokens="Length of every prompt in tokens.",
        new_tokens="Maximum tokens per completion.",
    )
)
@option(
    "--batch", "Batch sizes to measure, separated by commas.", "batches", group=MEASUREMENT,
    default="1,2,4,8", callback=_batches,
)  # fmt: skip
@option("--rounds", "Number of rounds to measure, after a warm-up.", group=MEASUREMENT, default=3)
@option(
    "--seed", "Seed that chooses the prompts. Default: 0, or a new one per run for a server.",
    group=MEASUREMENT, of="bench", type=int,
)  # fmt: skip
@option("--output", "JSON file to write the measurements to.", group=OUTPUT, of="bench", type=FILE)
@plot_option("tokens per second by batch size")
@model_options
@as_json
def bench(as_json: bool, output: Path | None, plot_path: Path | None, **settings: Any) -> None:
    """Measure the speed of MODEL (default: the built-in model) as in an evaluation.

    Prints load time, time to the first token, tokens per second for every batch size, and memory.
    Each figure is the median over the rounds with minimum and maximum.

    \b
    Examples:
      assay bench default
      assay bench model.gguf --batch 1,8,16 --output results/throughput.json
    """
    config = BenchConfig(**settings)
    if output is not None:
        _prepare(output)
    with ProgressDisplay(Path(config.model).name, quiet=as_json) as display:
        result = measure(config, display)
    if output is not None:
        write_whole(output, codec.pretty(result))
    save_plot(plot_path, lambda: draw_speed_curves((_curve(result),)))
    echo_result(result, lambda: _lines(result), as_json=as_json)


def _prepare(output: Path) -> None:
    """Raise an error for an output file that cannot be written, before the measurement."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        check_replaceable(output)
    except OSError as error:
        raise RunError(
            f"{output.parent}: cannot create the folder ({error.strerror}). "
            "Choose another --output."
        ) from error


def _curve(result: BenchResult) -> Line:
    spreads = [(batch.sequences, batch.tokens_per_second) for batch in result.figures.batches]
    speeds = (Point(n, spread.median, spread.min, spread.max) for n, spread in spreads if spread)
    return Line(result.model, tuple(speeds))


def _lines(result: BenchResult) -> list[str]:
    figures, settings, engine = result.figures, result.settings, result.engine
    where = engine.get("device") or engine.get("base_url") or "?"
    about = f"{result.model_identity.engine} · {where} · {result.machine.cpus} CPUs"
    lines = [f"{result.model} · {about}"]
    if result.load_s is not None:
        lines.append(f"  load         {result.load_s:.2f} s")
    first = result.rounds[0].first_token
    loaded = ", loading included" if result.loading == "every call" else ""
    lines += [
        f"  first token  {_spread(figures.time_to_first_token_ms)} ms after a prompt of "
        f"{first.prompt_tokens or 'an unknown number of'} tokens{loaded}",
        f"  prefill      {_spread(figures.prefill_tokens_per_second)} tokens/s of the prompt",
        f"  decoding     {_spread(figures.decode_tokens_per_second)} tokens/s, one sequence",
    ]
    if result.peak_memory_mb is not None:
        on_gpu = result.gpu_peak_memory_mb
        more = "" if on_gpu is None else f", {on_gpu:.0f} MB on the GPU"
        lines.append(f"  memory       {result.peak_memory_mb:.0f} MB{more}")
    rows: list[tuple[str, ...]] = [("batch", "tokens/s", "min", "max", "generated", "of")]
    for batch in figures.batches:
        wanted = batch.sequences * settings.new_tokens * settings.rounds
        numbers = _numbers(batch.tokens_per_second)
        rows.append((str(batch.sequences), *numbers, str(batch.tokens_generated), str(wanted)))
    return [*lines, *table(rows)]


def _spread(spread: Spread | None) -> str:
    """Return median, minimum and maximum as ``95.1 [94.0, 96.2]``."""
    median, low, high = _numbers(spread)
    return "-" if spread is None else f"{median} [{low}, {high}]"


def _numbers(spread: Spread | None) -> tuple[str, ...]:
    values = (None,) * 3 if spread is None else (spread.median, spread.min, spread.max)
    return tuple("-" if v is None else f"{v:,.{1 if v < 1000 else 0}f}" for v in values)
