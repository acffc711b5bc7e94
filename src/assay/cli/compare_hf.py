"""``assay compare-hf``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from assay import models
from assay.cli._options import as_json, data_dir, option, text_limit
from assay.cli._output import echo, echo_json
from assay.cli._plots import plot_option, save_plot
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
    "reference",
    default="",
    help="Reference model: a Hugging Face folder or hub id. Default: the same file, run by the "
    "hf engine.",
)
@option(
    "--prompts",
    metavar="N",
    type=click.IntRange(1, 20),
    default=PROMPTS,
    help="Number of prompts to compare, from the built-in benchmark.",
)
@option(
    "--dataset",
    default=BUILT_IN,
    help="Text for the perplexities: built-in (6 kB of code), wikitext-2, or a text file.",
)
@text_limit
@option(
    "--precision",
    "kind",
    default="auto",
    help="Thresholds to apply: same (unquantised weights), 8-bit, 4-bit, or auto, which chooses by "
    "the model's weights.",
)
@option(
    "--policy",
    type=click.Path(path_type=Path, dir_okay=False),
    help="YAML file with thresholds. Default: the built-in policy.",
)
@plot_option("the KL divergence by position")
@option(
    "--device", type=click.Choice(["auto", "cpu", "cuda"]), default="cpu",
    help="Device to run MODEL on.",
)  # fmt: skip
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
        found = compare(candidate, against, thresholds[kind], text, display, prompts)
    save_plot(plot_path, lambda: draw_divergence("", found.kl_by_position))
    record: dict[str, Any] = {
        "model": codec.to_json(candidate.identity),
        "reference": codec.to_json(against.identity),
        "precision": kind,
        **codec.to_json(found),
    }
    if as_json:
        echo_json(record)
    else:
        echo(*_lines(found, kind))
    if found.decision != "GO":
        click.get_current_context().exit(BROKEN)


def _lines(found: Parity, kind: str) -> list[str]:
    alike, parted = found.agreement, found.divergence
    lines = [
        f"tokens        {found.prompts - len(found.token_differences)} of {found.prompts} prompts "
        "have the same tokens",
        *(
            f"              {one.prompt!r}: from token {one.position} on {one.candidate}, "
            f"the reference {one.reference}"
            for one in found.token_differences
        ),
        f"logits        cosine {alike.cosine_mean:.6f} (least {alike.cosine_min:.6f}), "
        f"max difference {alike.max_abs_difference:.3f}, {alike.positions} positions",
        f"top 1         {100 * alike.top1_agreement:.2f} % the same",
        f"KL            mean {alike.kl_mean:.3g}, max {alike.kl_max:.3g} nats per token",
        f"greedy texts  {parted.same} of {parted.of} the same; others differ from token "
        + (", ".join(str(at) for at in parted.positions if at is not None) or "-"),
        f"perplexity    {found.candidate_perplexity:.4f}, the reference "
        f"{found.reference_perplexity:.4f} ({100 * found.perplexity_gap:+.2f} %)",
    ]
    for one in found.findings:
        lines.append(f"  {one.decision:<7} {one.name}: {one.value:.5g} (bound {one.bound:g})")
    return [*lines, f"{found.decision} by the thresholds for {kind} weights"]
