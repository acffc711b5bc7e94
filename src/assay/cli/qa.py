"""``assay qa``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay import models
from assay.cli._options import as_json, data_dir, option, results_dir
from assay.cli._output import echo, echo_json
from assay.cli._progress import ProgressDisplay
from assay.data import codec
from assay.models import EngineOptions
from assay.quality.decision import EXIT_CODES
from assay.quality.policy import load_policy
from assay.quality.qa import Subject, examine
from assay.runs import write_evidence

if TYPE_CHECKING:
    from assay.quality.qa import Evidence, QaItem


@click.command()
@click.argument("model", default=models.DEFAULT)
@option(
    "--tier",
    default="smoke",
    help="Tier of the policy: smoke, release, or one that --policy defines.",
)
@option(
    "--hf",
    "reference",
    default="",
    help="Reference model for the parity check, which then runs in every tier.",
)
@option(
    "--policy",
    type=click.Path(path_type=Path, dir_okay=False),
    help="YAML file with tiers and thresholds. Default: the built-in policy.",
)
@option(
    "--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto",
    help="Device to run MODEL on; auto uses a GPU if the engine finds one.",
)  # fmt: skip
@option(
    "--baseline", default="", metavar="RUN", envvar="ASSAY_QA_BASELINE",
    help="Run of another model. MODEL's newest result for the same benchmark must not be worse by "
    "the tier's margin or more.",
)  # fmt: skip
@option("--verbose", is_flag=True, help="Also print the figures behind each decision.")
@results_dir
@data_dir
@as_json
def qa(
    model: str, tier: str, reference: str, policy: Path | None, device: models.Device,
    baseline: str, verbose: bool, results_dir: Path, data_dir: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Decide by a policy whether MODEL is sound: GO, NO-GO or INCONCLUSIVE.

    Without MODEL, the built-in model is examined. The exit code is 0 for GO, 1 for NO-GO, 3 for
    INCONCLUSIVE and 2 for an error. A file with the evidence and the digests of all inputs is
    written to the results folder.

    \b
    Examples:
      assay qa model.gguf
      assay qa model.gguf --tier release --policy mine.yaml
    """
    thresholds = load_policy(policy)
    with ProgressDisplay("qa", quiet=as_json) as display:
        found = models.parse_reference(model, display.note)
        path = found.path
        subject = Subject(
            found, EngineOptions(device=device), results_dir, reference, data_dir, baseline
        )
        evidence = examine(subject, thresholds, tier, display)
        written = write_evidence(results_dir, f"qa_{path.stem}", codec.to_json(evidence))
    if as_json:
        echo_json(evidence)
    else:
        echo(*_lines(evidence, verbose=verbose))
        echo(f"evidence {written}")
    click.get_current_context().exit(EXIT_CODES[evidence.decision])


def _lines(evidence: Evidence, *, verbose: bool) -> list[str]:
    lines = []
    for item in evidence.items:
        lines.append(f"{item.decision:<13} {item.name}: {item.reason}")
        if verbose:
            lines += _figures(item)
    return [*lines, f"{evidence.decision} for the tier {evidence.tier}"]


def _figures(item: QaItem) -> list[str]:
    named = codec.to_json(item.figures).items()
    return [f"{'':<15}{name}: {_short(value)}" for name, value in named]


def _short(value: object) -> str:
    text = codec.dumps(value)
    return text if len(text) <= 160 else f"{text[:160]}…"
