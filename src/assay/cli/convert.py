"""``assay convert``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from assay import models
from assay.cli._options import as_json, option
from assay.cli._output import echo, echo_json, note

EVERY_S = 2.0


@click.command("convert")
@click.argument("source")
@click.argument("target", type=click.Path(path_type=Path))
@option(
    "--dtype",
    type=click.Choice(["float32", "float16", "bfloat16"]),
    envvar="ASSAY_CONVERT_DTYPE",  # ASSAY_DTYPE is that of generation
    help="Number format of all weights; default: each stays as it is stored.",
)
@option(
    "--force", is_flag=True, envvar="ASSAY_CONVERT_FORCE", help="Replace TARGET if it is there."
)
@as_json
def convert(source: str, target: Path, dtype: str | None, force: bool, as_json: bool) -> None:
    """Write the model SOURCE (or `default`) as TARGET: .gguf, .apr, or else a folder.

    Weights that TARGET can hold as they are stored go over bit by bit; others become float32.

    \b
    Examples:
      assay convert model.gguf model.apr
      assay convert model.apr folder --dtype bfloat16
    """
    lines = _Lines(quiet=as_json)
    done = models.convert(
        source, target, dtype=dtype or "", force=force, announce=lines.say, progress=lines.show
    )
    if as_json:
        echo_json(done)
        return
    echo(f"{done.target}  {done.format}, {done.tensors} tensors, {done.bytes / 1e6:.1f} MB")
    for change, count in done.changed.items():
        echo(f"  {change}{'' if dtype else ', exactly'}: {count}")


class _Lines:
    """How far a long conversion is, on stderr."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._last = time.monotonic()

    def say(self, text: str) -> None:
        if not self._quiet:
            note(text)

    def show(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last >= EVERY_S:
            self._last = now
            self.say(f"converting {done / 1e6:.0f} of {total / 1e6:.0f} MB")
