"""``assay extract``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay.cli._choices import python
from assay.cli._options import as_json, data_dir, option, prompt_imports
from assay.cli._output import Styled, echo, echo_json, echo_text
from assay.cli._progress import ProgressDisplay
from assay.extract import extraction_rules
from assay.pipeline import ScoreConfig
from assay.pipeline.score import ExtractedProgram, extract_programs

if TYPE_CHECKING:
    from assay.types import PromptImports

SHOWN = 6  # removed lines of a step, at each end


@click.command()
@click.argument("samples_file", metavar="SAMPLES.jsonl")
@option("--benchmark", required=True, help="Benchmark that the samples belong to.")
@option("--explain", is_flag=True, help="Show what every rule removed and added.")
@prompt_imports
@python
@data_dir
@as_json
def extract(
    samples_file: str,
    benchmark: str,
    explain: bool,
    prompt_imports: PromptImports,
    python: str,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Extract the programs from recorded completions, without executing them.

    \b
    Example:
      assay extract samples.jsonl --benchmark humaneval --explain
    """
    config = ScoreConfig(
        benchmark,
        Path(),
        samples_file=samples_file,
        prompt_imports=prompt_imports,
        python=python,
        data_dir=data_dir,
        partial=True,
    )
    with ProgressDisplay(benchmark, quiet=True) as display:
        for found in extract_programs(config, display, explain=explain):
            if as_json:
                echo_json(_record(found, explain=explain))
                continue
            why = f" ({found.reason}: {found.detail})" if found.reason else ""
            title = f"{found.task_id} #{found.sample}  {found.program.rule}{why}"
            echo((Styled(title, bold=True),))
            if explain:
                for change in found.changes:
                    echo(f"  {change.rule}: {extraction_rules.get(change.rule).summary}")
                    _show(list(change.lines))
            else:
                echo_text(found.program.code)


def _record(found: ExtractedProgram, *, explain: bool) -> dict[str, object]:
    record: dict[str, object] = {
        "task_id": found.task_id,
        "sample": found.sample,
        "rule": found.program.rule,
        "solution": found.program.code,
    }
    if found.reason:
        record |= {"reason": found.reason, "detail": found.detail}
    if explain:
        record["steps"] = [{"rule": c.rule, "changes": c.lines} for c in found.changes]
    return record


def _show(changes: list[str]) -> None:
    hidden = len(changes) - 2 * SHOWN
    if hidden > 1:
        changes = [*changes[:SHOWN], f"… {hidden} more lines …", *changes[-SHOWN:]]
    for line in changes:
        echo((Styled(f"    {line}", {"-": "red", "+": "green"}.get(line[:1])),))
