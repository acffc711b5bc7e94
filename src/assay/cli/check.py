"""``assay check``."""

from __future__ import annotations

from collections import Counter

import click

from assay.cli._groups import option
from assay.cli._options import as_json
from assay.cli._output import StatusLine, Styled, echo, echo_result
from assay.data import codec
from assay.models import DEFAULT
from assay.progress import Silent
from assay.quality.check.stages import STAGES, CheckStage, check

UNSOUND = 1  # the exit code
COLOURS = {"pass": "green", "fail": "red", "skipped": "yellow"}


@click.command("check")
@click.argument("model", default=DEFAULT)
@option(
    "--run/--no-run", "Whether to run the model if its file is sound.", "run", of="check",
    default=True,
)  # fmt: skip
@as_json
def check_model(model: str, run: bool, as_json: bool) -> None:
    """Check whether MODEL (.gguf, .apr, a Hugging Face folder, or `default`) is sound.

    Checks the model's file, then runs it. The exit code is 1 if a stage fails.

    \b
    Examples:
      assay check model.gguf
      assay check folder --json
    """
    line = _Line(quiet=as_json)
    stages: list[CheckStage] = []
    for stage in check(model, run=run, reporter=line):
        stages.append(stage)
        line.clear()
        if not as_json:
            status = Styled(f"{stage.status:<9}", COLOURS[stage.status])
            echo((f"{stage.name:<11}", status, stage.reason))
        if len(stages) < len(STAGES):
            line.show(f"{STAGES[len(stages)]} …")
    line.clear()
    counts = Counter(stage.status for stage in stages)
    sound = not counts["fail"]
    summary = f"{counts['pass']} passed, {counts['fail']} failed, {counts['skipped']} skipped"
    echo_result(
        {"model": model, "sound": sound, "stages": list(map(codec.to_json, stages))},
        lambda: [f"{model} is {'sound' if sound else 'not sound'}: {summary}"],
        as_json=as_json,
    )
    if not sound:
        click.get_current_context().exit(UNSOUND)


class _Line(StatusLine, Silent):
    def note(self, text: str) -> None:
        self.show(text)

    def preparing(self, what: str, done: int, total: int) -> None:
        self.show(f"{what} {100 * done // max(1, total)} %")
