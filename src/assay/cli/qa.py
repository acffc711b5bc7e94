"""``assay qa``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay import models
from assay.cli._groups import option, switch
from assay.cli._options import FILE, as_json, data_dir, device_option, results_dir
from assay.cli._output import echo_result
from assay.cli._progress import ProgressDisplay
from assay.data import codec
from assay.models import EngineOptions
from assay.quality.decision import EXIT_CODES
from assay.quality.policy import load_policy
from assay.quality.qa import Subject, examine
from assay.runs import write_evidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.quality.qa import Evidence


@click.command()
@click.argument("model", default=models.DEFAULT)
@option(
    "--tier",
    "Tier of the policy: smoke, release, or one that --policy defines.",
    default="smoke",
)
@option(
    "--hf",
    "Reference model for the parity check, which then runs in every tier.",
    "reference",
    default="",
)
@option(
    "--policy",
    "YAML file with tiers and thresholds. Default: the built-in policy.",
    type=FILE,
)
@device_option("auto", "Device to run MODEL on; auto uses a GPU if the engine finds one.")
@option(
    "--baseline",
    "Run of another model. MODEL's newest result for the same benchmark must not be worse by "
    "the tier's margin or more.",
    of="qa", default="", metavar="RUN",
)  # fmt: skip
@switch("--verbose", "Also print the figures behind each decision.")
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
        named = models.parse_reference(model, display.note)
        name = f"qa_{named.path.stem}"  # before anything else: it fails if there is no such model
        subject = Subject(
            named, EngineOptions(device=device), results_dir, reference, data_dir, baseline
        )
        evidence = examine(subject, thresholds, tier, display)
        written = write_evidence(results_dir, name, codec.to_json(evidence))
    lines = [*_lines(evidence, verbose=verbose), f"evidence {written}"]
    echo_result(evidence, lambda: lines, as_json=as_json)
    click.get_current_context().exit(EXIT_CODES[evidence.decision])


def _lines(evidence: Evidence, *, verbose: bool) -> Iterator[str]:
    for item in evidence.items:
        yield f"{item.decision:<13} {item.name}: {item.reason}"
        for name, value in codec.to_json(item.figures).items() if verbose else ():
            text = codec.dumps(value)
            yield f"{'':<15}{name}: {text if len(text) <= 160 else f'{text[:160]}…'}"
    yield f"{evidence.decision} for the tier {evidence.tier}"
