"""``assay show``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from assay.cli._groups import option, switch
from assay.cli._options import as_json, data_dir, results_dir
from assay.cli._output import Styled, echo, echo_json, echo_result, echo_text
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
    "--sample", "Number of the sample, from 0. Default: all.", metavar="N",
    type=click.IntRange(min=0),
)  # fmt: skip
@switch("--failed", "Only samples that did not pass.")
@option("--reason", "Only samples with this reason, such as wrong-answer.", default="")
@switch("--full", "Do not shorten long texts on a terminal.")
@results_dir
@data_dir
@as_json
def show(
    run: str, task: str, sample: int | None, failed: bool, reason: str, full: bool,
    results_dir: Path, data_dir: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """List the samples of RUN, or show one with its prompt, answer, program and verdict.

    If several samples match, they are listed. A single sample is shown in full. RUN is a run's
    name, folder or results file, and may still be in progress.

    \b
    Examples:
      assay show humaneval_20261116_170138 --failed
      assay show humaneval_20261116_170138 HumanEval/3
      assay show results/mini_20261116_171410 mini/2 --sample 1 --json
    """
    inspected = inspect_run(run, results_dir, SampleFilter(task, sample, failed, reason))
    if len(inspected.samples) > 1:
        echo_result(_render(inspected), lambda: _describe(inspected), as_json=as_json)
        return
    (only,) = inspected.samples
    with ProgressDisplay(inspected.benchmark, quiet=as_json) as display:
        details = inspect_sample(inspected, only, display, data_dir)
    if as_json:
        echo_json(details)
        return
    status, key = status_of(only), only.completion
    title = f"{inspected.benchmark} · {inspected.model} · {key.task_id} · sample {key.sample} · "
    marked = inspected.result.marks if inspected.result else ()
    marks = f" · {label_marks(marked)}" if marked else ""
    echo((Styled(title, bold=True), Styled(status, COLOURS.get(status), bold=True), marks))
    shortened = sys.stdout.isatty() and not full
    for section in describe_sample(details):
        echo("", (Styled(f"--- {section.title}", bold=True),))
        echo_text(_shorten(section.text) if section.long and shortened else section.text)


def _render(inspected: InspectedRun) -> list[dict[str, object]]:
    return [
        {
            "task_id": one.completion.task_id,
            "sample": one.completion.sample,
            "status": status_of(one),
            "reason": reason_of(one),
            "verdict": codec.to_json(one.verdict),
        }
        for one in inspected.samples
    ]


def _describe(inspected: InspectedRun) -> Iterator[str]:
    yield from list_samples(inspected)
    yield f"{len(inspected.samples)} of {inspected.total} samples of {inspected.run}"
    if inspected.result is not None:
        if times := describe_times(inspected.result.timing):
            yield f"time  {times}"
        yield from explain_marks(inspected.result.marks)


def _shorten(text: str) -> str:
    lines = text.splitlines()
    hidden = len(lines) - MOST_LINES
    if hidden < 2:
        return text
    half = MOST_LINES // 2
    return "\n".join(
        [*lines[:half], f"… {hidden} lines hidden; --full shows them …", *lines[-half:]]
    )
