"""``assay compare-hf``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from assay import models
from assay.cli._groups import option
from assay.cli._options import (
    FILE,
    as_json,
    data_dir,
    device_option,
    plot_option,
    save_plot,
    text_limit,
)
from assay.cli._output import echo_result
from assay.cli._progress import ProgressDisplay
from assay.data import codec
from assay.errors import UsageError
from assay.formats.format import precision
from assay.models import EngineOptions
from assay.quality.parity import PROMPTS, Parity, compare
from assay.quality.perplexity import BUILT_IN, load_text
from assay.quality.policy import load_policy
from assay.report.plots import draw_divergence

BROKEN = 1


@click.command("compare-hf")
@click.argument("model", default=models.DEFAULT)
@option(
    "--hf",
    "Reference model: a Hugging Face folder or hub id. Default: the same file, run by the "
    "hf engine.",
    "reference",
    default="",
)
@option(
    "--prompts", "Number of prompts to compare, from the built-in benchmark.", metavar="N",
    type=click.IntRange(1, 20), default=PROMPTS,
)  # fmt: skip
@option(
    "--dataset",
    "Text for the perplexities: built-in (6 kB of code), wikitext-2, or a text file.",
    default=BUILT_IN,
)
@text_limit
@option(
    "--precision",
    "Thresholds to apply: same (unquantised weights), 8-bit, 4-bit, or auto, which chooses by "
    "the model's weights.",
    "kind",
    default="auto",
)
@option("--policy", "YAML file with thresholds. Default: the built-in policy.", type=FILE)
@plot_option("the KL divergence by position")
@device_option("cpu", "Device to run MODEL on.")
@data_dir
@as_json
def compare_hf(
    model: str, reference: str, prompts: int, dataset: str, limit: int, kind: str,
    policy: Path | None, plot_path: Path | None, device: models.Device, data_dir: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Compare MODEL with a Hugging Face reference in float32: tokens, logits, texts, perplexity.

    Without MODEL, the built-in model is compared. The exit code is 1 if a threshold is not met.

    \b
    Examples:
      assay compare-hf model.gguf --hf path/to/original
      assay compare-hf default --plot kl.svg
    """
    thresholds = load_policy(policy).parity
    with ProgressDisplay("compare-hf", quiet=as_json) as display:
        named = models.parse_reference(model, display.note)
        path = named.path
        kind = precision(path) if kind == "auto" else kind
        if kind not in thresholds:
            raise UsageError(
                f"--precision: the policy has no thresholds for {kind}. "
                f"Choose {', '.join(thresholds)}."
            )
        text = load_text(dataset, limit, display.note, data_dir).content
        candidate = models.open_model(str(named), EngineOptions(device=device))
        against = models.open_model(
            reference or f"hf:{path}", EngineOptions(device="cpu", dtype="float32")
        )
        parity = compare(candidate, against, thresholds[kind], text, display, prompts)
    save_plot(plot_path, lambda: draw_divergence("", parity.kl_by_position))
    record: dict[str, Any] = {
        "model": codec.to_json(candidate.identity),
        "reference": codec.to_json(against.identity),
        "precision": kind,
        **codec.to_json(parity),
    }
    echo_result(record, lambda: _lines(parity, kind), as_json=as_json)
    if parity.decision != "GO":
        click.get_current_context().exit(BROKEN)


def _lines(parity: Parity, kind: str) -> list[str]:
    alike, parted = parity.agreement, parity.divergence
    lines = [
        f"tokens        {parity.prompts - len(parity.token_differences)} of {parity.prompts} "
        "prompts have the same tokens",
        *(
            f"              {one.prompt!r}: from token {one.position} on {one.candidate}, "
            f"the reference {one.reference}"
            for one in parity.token_differences
        ),
        f"logits        cosine {alike.cosine_mean:.6f} (least {alike.cosine_min:.6f}), "
        f"max difference {alike.max_abs_difference:.3f}, {alike.positions} positions",
        f"top 1         {100 * alike.top1_agreement:.2f} % the same",
        f"KL            mean {alike.kl_mean:.3g}, max {alike.kl_max:.3g} nats per token",
        f"greedy texts  {parted.same} of {parted.of} the same; others differ from token "
        + (", ".join(str(at) for at in parted.positions if at is not None) or "-"),
        f"perplexity    {parity.candidate_perplexity:.4f}, the reference "
        f"{parity.reference_perplexity:.4f} ({100 * parity.perplexity_gap:+.2f} %)",
    ]
    for one in parity.findings:
        lines.append(f"  {one.decision:<7} {one.name}: {one.value:.5g} (bound {one.bound:g})")
    return [*lines, f"{parity.decision} by the thresholds for {kind} weights"]
