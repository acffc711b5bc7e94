"""``assay perplexity``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from assay import models
from assay.cli._groups import MEASUREMENT, GroupedCommand
from assay.cli._options import as_json, data_dir, model_options, option, text_limit
from assay.cli._output import echo, echo_json
from assay.cli._progress import ProgressDisplay
from assay.data import codec
from assay.models.scoring import open_scorer
from assay.quality.perplexity import WIKITEXT, WINDOW, load_text, measure

if TYPE_CHECKING:
    from pathlib import Path


@click.command(cls=GroupedCommand)
@click.argument("model", default=models.DEFAULT)
@option(
    "--dataset",
    group=MEASUREMENT,
    default=WIKITEXT,
    help="Text to predict: wikitext-2, built-in (6 kB of code), or a text file.",
)
@text_limit
@option(
    "--window",
    group=MEASUREMENT,
    type=int,
    default=0,
    help=f"Context length in tokens; 0 means {WINDOW}, or the model's maximum if that is less.",
)
@option(
    "--stride", group=MEASUREMENT, type=int, default=0,
    help="Number of tokens predicted per window; 0 means half a window.",
)  # fmt: skip
@model_options
@data_dir
@as_json
def perplexity(
    model: str, dataset: str, limit: int, window: int, stride: int, data_dir: Path | None,
    as_json: bool, engine: models.EngineOptions,
) -> None:  # fmt: skip
    """Measure how well MODEL predicts a text: cross entropy, perplexity, bits per byte.

    Without MODEL, the built-in model is measured.

    \b
    Examples:
      assay perplexity model.gguf
      assay perplexity path/to/folder --dataset mine.txt --window 2048
    """
    with ProgressDisplay("perplexity", quiet=as_json) as display:
        text = load_text(dataset, limit, display.note, data_dir)
        opened = models.open_model(model, engine, display.note)
        display.loading()
        started = time.monotonic()
        with open_scorer(opened) as scorer:
            found = measure(scorer, text.content, window, stride, display)
            facts = scorer.facts
        seconds = time.monotonic() - started
    record: dict[str, Any] = {
        "model": codec.to_json(opened.identity),
        "dataset": {"name": text.name, "sha256": text.sha256, "bytes": len(text.content.encode())},
        "results": codec.to_json(found),
        "engine": facts.to_json(),
        "used_gpu": scorer.used_gpu,
        "seconds": round(seconds, 1),
    }
    if as_json:
        echo_json(record)
        return
    interval = ""
    if found.low is not None and found.high is not None:
        interval = f"  [{found.low:.3f}, {found.high:.3f}] (95 %)"
    echo(f"{text.name} · {opened.identity.name} · {opened.identity.engine}")
    echo(f"  perplexity     {found.perplexity:.3f}{interval}")
    echo(f"  cross entropy  {found.cross_entropy:.4f} nats per token")
    echo(f"  bits per byte  {found.bits_per_byte:.4f}")
    echo(
        f"  over           {found.tokens:,} tokens, {found.bytes:,} bytes, window {found.window}, "
        f"stride {found.stride}, {seconds:.0f} s"
    )
