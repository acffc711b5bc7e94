"""``assay show``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from assay.cli._options import as_json, data_dir, option, results_dir
from assay.cli._output import Styled, echo, echo_json, echo_text
from assay.cli._progress import ProgressDisplay
from assay.data import codec
from assay.report.inspection import (
    InspectedRun,
    SampleFilter,
    describe_sample,
    inspect_run,
    inspect_sample,
    list_samples,
    reason_of,
    status_of,
)
from assay.report.text import describe_times, explain_marks, label_marks

COLOURS = {"pass": "green", "fail": "red", "invalid": "yellow"}
MOST_LINES = 24  # shown of a long text on a terminal


@click.command()
@click.argument("run")
@click.argument("task", default="")
@option(
    "--sample",
    metavar="N",
    type=click.IntRange(min=0),
    help="Number of the sample, from 0. Default: all.",
)
@option("--failed", is_flag=True, help="Only samples that did not pass.")
@option("--reason", default="", help="Only samples with this reason, such as wrong-answer.")
@option("--full", is_flag=True, help="Do not shorten long texts on a terminal.")
@results_dir
@data_dir
@as_json
def show(
    run: str,
    task: str,
    sample: int | None,
    failed: bool,
    reason: str,
    full: bool,
    results_dir: Path,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """List the samples of RUN, or show one with its prompt, answer, program and verdict.

    If several samples match, they are listed. A single sample is shown in full. RUN is a run's
    name, folder or results file, and may still be in progress.

    \b
    Examples:
      assay show humaneval_20261116_170138 --failed
      assay show humaneval_20261116_170138 HumanEval/3
      assay show results/mini_20261116_171410 mini/2 --sample 1 --json
    """
    found = inspect_run(run, results_dir, SampleFilter(task, sample, failed, reason))
    if len(found.samples) > 1:
        _print_list(found, as_json=as_json)
        return
    with ProgressDisplay(found.benchmark, quiet=as_json) as display:
        inspected = inspect_sample(found, found.samples[0], display, data_dir)
    if as_json:
        echo_json(inspected)
        return
    key = found.samples[0].completion
    status = status_of(found.samples[0])
    title = f"{found.benchmark} · {found.model} · {key.task_id} · sample {key.sample} · "
    marked = found.result.marks if found.result else ()
    marks = f" · {label_marks(marked)}" if marked else ""
    echo((Styled(title, bold=True), Styled(status, COLOURS.get(status), bold=True), marks))
    shortened = sys.stdout.isatty() and not full
    for section in describe_sample(inspected):
        echo("", (Styled(f"--- {section.title}", bold=True),))
        echo_text(_shorten(section.text) if section.long and shortened else section.text)


def _print_list(found: InspectedRun, *, as_json: bool) -> None:
    if as_json:
        echo_json(
            [
                {
                    "task_id": one.completion.task_id,
                    "sample": one.completion.sample,
                    "status": status_of(one),
                    "reason": reason_of(one),
                    "verdict": codec.to_json(one.verdict),
                }
                for one in found.samples
            ]
        )
        return
    echo(*list_samples(found))
    echo(f"{len(found.samples)} of {found.total} samples of {found.run}")
    if found.result is not None:
        times = describe_times(found.result.timing)
        echo(*([f"time  {times}"] if times else []), *explain_marks(found.result.marks))


def _shorten(text: str) -> str:
    lines = text.splitlines()
    hidden = len(lines) - MOST_LINES
    if hidden < 2:
        return text
    half = MOST_LINES // 2
    return "\n".join(
        [*lines[:half], f"… {hidden} lines hidden; --full shows them …", *lines[-half:]]
    )
