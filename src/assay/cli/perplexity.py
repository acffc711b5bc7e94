"""``assay perplexity``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from assay import models
from assay.cli._groups import MEASUREMENT, GroupedCommand, option
from assay.cli._option_sets import model_options
from assay.cli._options import as_json, data_dir, text_limit
from assay.cli._output import echo_result
from assay.cli._progress import ProgressDisplay
from assay.data import codec
from assay.models.scoring import open_scorer
from assay.quality.perplexity import WIKITEXT, WINDOW, Perplexity, load_text, measure

if TYPE_CHECKING:
    from pathlib import Path


@click.command(cls=GroupedCommand)
@click.argument("model", default=models.DEFAULT)
@option(
    "--dataset", "Text to predict: wikitext-2, built-in (6 kB of code), or a text file.",
    group=MEASUREMENT, default=WIKITEXT,
)  # fmt: skip
@text_limit
@option(
    "--window",
    f"Context length in tokens; 0 means {WINDOW}, or the model's maximum if that is less.",
    group=MEASUREMENT,
    default=0,
)
@option(
    "--stride", "Number of tokens predicted per window; 0 means half a window.", group=MEASUREMENT,
    default=0,
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
            result = measure(scorer, text.content, window, stride, display)
            facts = scorer.facts
        seconds = time.monotonic() - started
    record: dict[str, Any] = {
        "model": codec.to_json(opened.identity),
        "dataset": {"name": text.name, "sha256": text.sha256, "bytes": len(text.content.encode())},
        "results": codec.to_json(result),
        "engine": facts.to_json(),
        "used_gpu": scorer.used_gpu,
        "seconds": round(seconds, 1),
    }
    about = f"{text.name} · {opened.identity.name} · {opened.identity.engine}"
    echo_result(record, lambda: [about, *_lines(result, seconds)], as_json=as_json)


def _lines(result: Perplexity, seconds: float) -> list[str]:
    interval = ""
    if result.low is not None and result.high is not None:
        interval = f"  [{result.low:.3f}, {result.high:.3f}] (95 %)"
    return [
        f"  perplexity     {result.perplexity:.3f}{interval}",
        f"  cross entropy  {result.cross_entropy:.4f} nats per token",
        f"  bits per byte  {result.bits_per_byte:.4f}",
        f"  over           {result.tokens:,} tokens, {result.bytes:,} bytes, "
        f"window {result.window}, stride {result.stride}, {seconds:.0f} s",
    ]
