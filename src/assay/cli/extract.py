"""``assay extract``."""

from __future__ import annotations

import difflib
from pathlib import Path

import click

from assay.cli._options import as_json, data_dir, option
from assay.cli._output import Styled, echo, echo_json, echo_text
from assay.cli._progress import ProgressDisplay
from assay.pipeline import ScoreConfig
from assay.pipeline.extraction import RULES, Extracted, Step, extracted

SHOWN = 6  # removed lines of a step, at each end


@click.command()
@click.argument("samples_file", metavar="SAMPLES.jsonl")
@option("--benchmark", required=True, help="The benchmark the samples are for.")
@option("--explain", is_flag=True, help="Say what every rule removed and added.")
@data_dir
@as_json
def extract(
    samples_file: str, benchmark: str, explain: bool, data_dir: Path | None, as_json: bool
) -> None:
    """Show the programs in recorded completions, without executing anything.

    \b
    Example:
      assay extract samples.jsonl --benchmark humaneval --explain
    """
    config = ScoreConfig(benchmark, Path(), samples_file=samples_file, data_dir=data_dir)
    with ProgressDisplay(benchmark, quiet=True) as display:
        for found in extracted(config, display):
            if as_json:
                echo_json(_record(found, explain=explain))
                continue
            title = f"{found.task_id} #{found.sample}  {found.program.rule}"
            echo((Styled(title, bold=True),))
            if explain:
                for step in found.steps:
                    echo(f"  {step.rule}: {RULES[step.rule]}")
                    _show(_changes(step))
            else:
                echo_text(found.program.code)


def _record(found: Extracted, *, explain: bool) -> dict[str, object]:
    record: dict[str, object] = {
        "task_id": found.task_id,
        "sample": found.sample,
        "rule": found.program.rule,
        "solution": found.program.code,
    }
    if explain:
        record["steps"] = [{"rule": step.rule, "changes": _changes(step)} for step in found.steps]
    return record


def _changes(step: Step) -> list[str]:
    """Lines that went (-) and came (+)."""
    before, after = step.before.splitlines(), step.after.splitlines()
    changes = difflib.unified_diff(before, after, n=0, lineterm="")
    return [line for line in changes if not line.startswith(("---", "+++", "@@"))]


def _show(changes: list[str]) -> None:
    hidden = len(changes) - 2 * SHOWN
    if hidden > 1:
        changes = [*changes[:SHOWN], f"… {hidden} more lines …", *changes[-SHOWN:]]
    for line in changes:
        echo((Styled(f"    {line}", {"-": "red", "+": "green"}.get(line[:1])),))
