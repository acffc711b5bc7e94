"""Render lists of runs as a table or as comma-separated values."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from assay.data.printable import clean_line
from assay.report import text
from assay.runs import RunEntry

WEIGHTS, JUDGE = "weights", "judge"
OF_SAMPLING = ("top-k", "seed")
COUNTS = ("selected_problems", "judged_problems", "samples", "judged_samples", "complete")


# Columns that are shown only if the runs differ in them, and where a run has their values.
SETTINGS = {
    "problems": "protocol.problems",
    "strategy": "protocol.prompt_strategy",
    "n": "protocol.n_samples",
    "temperature": "protocol.decoding.temperature",
    "top-k": "protocol.decoding.top_k",
    "top-p": "protocol.decoding.top_p",
    "min-p": "protocol.decoding.min_p",
    "penalty": "protocol.decoding.repetition_penalty",
    "seed": "protocol.decoding.seed",
    "max-tokens": "protocol.decoding.max_tokens",
    "form": "protocol.asking.prompt_form",
    "thinking": "protocol.asking.thinking",
    "system": "protocol.asking.system",
    "stop": "protocol.asking.stop",
    "options": "protocol.asking.engine_options",
    "imports": "protocol.prompt_imports",
    "engine": "model_identity.engine",
    "format": "model_identity.variant",
    WEIGHTS: "model_identity.weights_sha256",
    "sandbox": "protocol.sandbox",
    "python": "protocol.python",
    JUDGE: "protocol.judge",
}
OF_ASKING = ("protocol.decoding.", "protocol.asking.")


def _look_up(run: RunEntry, path: str) -> str:
    value: object = run
    for name in path.split("."):
        value = getattr(value, name, None)
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _setting(run: RunEntry, name: str) -> str:
    """Return a setting of a run as text.

    How the model was asked is not known of recorded runs, and greedy runs sample nothing.
    """
    path = SETTINGS[name]
    if name == "form":
        return _look_up(run, path) or _look_up(run, "model_identity.prompt_form")
    if run.protocol.origin and path.startswith(OF_ASKING):
        return ""
    if name in OF_SAMPLING and _setting(run, "temperature") in ("", "0"):
        return ""
    return _look_up(run, path)[: 12 if name == WEIGHTS else None]


def history_table(runs: Sequence[RunEntry]) -> list[str]:
    """Return a line per run. Settings are shown only if the runs differ in them."""
    settings = _differing(runs)
    results = [run.result for run in runs if run.result]
    shows_ten = any(10 in result.pass_at for result in results)
    levels = {text.level(result.pass_at[1]) for result in results if 1 in result.pass_at}
    level = levels.pop() if len(levels) == 1 else "interval"
    ten = ("pass@10",) if shows_ten else ()
    headings = (
        "run", "benchmark", "model", *settings, "pass@1", level, *ten, "invalid", "protocol",
        "marks",
    )  # fmt: skip
    lines = text.table([headings, *(_row(run, settings, shows_ten=shows_ten) for run in runs)])
    if any(result.results.left_out_as_failed for result in results):
        lines.append(text.LEFT_OUT_NOTE)
    return lines + text.explain_marks(name for result in results for name in result.marks)


def _differing(runs: Sequence[RunEntry]) -> list[str]:
    values = {name: {_setting(run, name) for run in runs} for name in SETTINGS}
    for name in OF_SAMPLING:
        values[name] -= {""}  # greedy runs have none
    # Another judge than assay is always listed.
    names = [
        n for n, choices in values.items() if len(choices) > 1 or (n == JUDGE and any(choices))
    ]
    models = {(run.model, _setting(run, WEIGHTS)) for run in runs}
    if len(models) == len({run.model for run in runs}):  # the names tell them apart
        names = [name for name in names if name != WEIGHTS]
    return names


def _row(run: RunEntry, settings: list[str], *, shows_ten: bool) -> tuple[str, ...]:
    return (
        run.run,
        f"{run.benchmark}{run.selection}",
        run.model,
        *(_setting(run, name) for name in settings),
        *_scores(run, shows_ten=shows_ten),
        run.protocol.hash[:12],
        text.label_marks(run.result.marks) if run.result else "",
    )


def _scores(run: RunEntry, *, shows_ten: bool) -> tuple[str, ...]:
    if (result := run.result) is None:
        return ("unfinished", "", *([""] if shows_ten else []), "")
    one = text.score(result.results, 1)
    if gap := text.describe_gap(result.coverage):
        one += f" incomplete: {gap}"
    ten = [text.percent_of(result.pass_at.get(10))] if shows_ten else []
    return (one, text.interval(result.pass_at.get(1)), *ten, str(result.results.invalid))


def history_csv(runs: Sequence[RunEntry]) -> str:
    """Return one line per run with every setting. Scores are numbers between 0 and 1."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        (
            "run", "timestamp", "benchmark", "model", *SETTINGS, "pass_at_1", "pass_at_10",
            "pass_at_1_low", "pass_at_1_high", "invalid", *COUNTS, "protocol", "marks",
        )
    )  # fmt: skip
    for run in runs:
        pass_at = run.result.pass_at if run.result else {}
        one, ten = pass_at.get(1), pass_at.get(10)
        coverage = run.result.coverage if run.result else None
        row = (
            run.run, run.timestamp, f"{run.benchmark}{run.selection}", run.model,
            *(_setting(run, name) for name in SETTINGS),
            one and one.value, ten and ten.value, one and one.low, one and one.high,
            run.result and run.result.results.invalid,
            *(getattr(coverage, name, None) for name in COUNTS),
            run.protocol.hash,
            " ".join(run.result.marks) if run.result else "",
        )  # fmt: skip
        writer.writerow(["" if value is None else clean_line(str(value)) for value in row])
    return file.getvalue()
