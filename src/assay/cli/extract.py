"""``assay extract``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from assay.cli._groups import option, switch
from assay.cli._options import as_json, data_dir, prompt_imports, python
from assay.cli._output import Styled, echo, echo_json, echo_text
from assay.cli._progress import ProgressDisplay
from assay.extract import extraction_rules
from assay.pipeline import ScoreConfig
from assay.pipeline.score import ExtractedProgram, extract_programs

SHOWN = 6  # removed lines of a step, at each end


@click.command()
@click.argument("samples_file", metavar="SAMPLES.jsonl")
@option("--benchmark", "Benchmark that the samples belong to.", required=True)
@switch("--explain", "Show what every rule removed and added.")
@prompt_imports
@python
@data_dir
@as_json
def extract(benchmark: str, explain: bool, as_json: bool, **settings: Any) -> None:
    """Extract the programs from recorded completions, without executing them.

    \b
    Example:
      assay extract samples.jsonl --benchmark humaneval --explain
    """
    config = ScoreConfig(benchmark, Path(), partial=True, **settings)
    with ProgressDisplay(benchmark, quiet=True) as display:
        for one in extract_programs(config, display, explain=explain):
            if as_json:
                echo_json(_record(one, explain=explain))
                continue
            why = f" ({one.reason}: {one.detail})" if one.reason else ""
            title = f"{one.task_id} #{one.sample}  {one.program.rule}{why}"
            echo((Styled(title, bold=True),))
            if explain:
                for change in one.changes:
                    echo(f"  {change.rule}: {extraction_rules.get(change.rule).summary}")
                    _show(list(change.lines))
            else:
                echo_text(one.program.code)


def _record(one: ExtractedProgram, *, explain: bool) -> dict[str, object]:
    record: dict[str, object] = {
        "task_id": one.task_id,
        "sample": one.sample,
        "rule": one.program.rule,
        "solution": one.program.code,
    }
    if one.reason:
        record |= {"reason": one.reason, "detail": one.detail}
    if explain:
        record["steps"] = [{"rule": c.rule, "changes": c.lines} for c in one.changes]
    return record


def _show(changes: list[str]) -> None:
    hidden = len(changes) - 2 * SHOWN
    if hidden > 1:
        changes = [*changes[:SHOWN], f"… {hidden} more lines …", *changes[-SHOWN:]]
    for line in changes:
        echo((Styled(f"    {line}", {"-": "red", "+": "green"}.get(line[:1])),))
