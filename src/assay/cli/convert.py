"""``assay convert``."""

from __future__ import annotations

from pathlib import Path

import click

from assay import models
from assay.cli._groups import option, switch
from assay.cli._options import ANY_PATH, as_json
from assay.cli._output import echo_result
from assay.cli._progress import ProgressDisplay
from assay.formats.tensors import FLOATS, QUANTISED

MEGABYTE = 1_000_000


@click.command("convert")
@click.argument("source")
@click.argument("target", type=ANY_PATH)
@option(
    "--dtype",
    "Data type of all weights; q8_0 and other quantised types for .gguf only. Default: the "
    "type of each weight in SOURCE.",
    type=click.Choice([*FLOATS, *QUANTISED]),
    of="convert",  # ASSAY_DTYPE is that of generation
)
@switch("--force", "Overwrite TARGET if it exists.", of="convert")
@as_json
def convert(source: str, target: Path, dtype: str | None, force: bool, as_json: bool) -> None:
    """Convert the model SOURCE (or `default`) to TARGET: .gguf, .apr, or a Hugging Face folder.

    Weights are copied exactly if TARGET supports their format. Others are stored as float32.

    \b
    Examples:
      assay convert model.gguf model.apr
      assay convert model.apr folder --dtype bfloat16
      assay convert folder model.Q8_0.gguf --dtype q8_0
    """
    with ProgressDisplay("", quiet=as_json) as display:
        done = models.convert(
            source, target, dtype=dtype or "", force=force, announce=display.note,
            progress=lambda written, total: display.preparing(
                "converting, MB:", written // MEGABYTE, total // MEGABYTE
            ),
        )  # fmt: skip
    exactly = "" if dtype else ", exactly"
    lines = [f"{done.target}  {done.format}, {done.tensors} tensors, {done.bytes / 1e6:.1f} MB"]
    lines += [f"  {change}{exactly}: {count}" for change, count in done.changed.items()]
    echo_result(done, lambda: lines, as_json=as_json)
