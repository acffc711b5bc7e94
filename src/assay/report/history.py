"""Render lists of runs as a table or as comma-separated values."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence

from assay.data.printable import clean_line
from assay.report import text
from assay.runs import RunEntry

WEIGHTS, JUDGE = "weights", "judge"
OF_SAMPLING = ("top-k", "seed")
COUNTS = ("selected_problems", "judged_problems", "samples", "judged_samples", "complete")


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _protocol(name: str) -> Callable[[RunEntry], str]:
    """Return a function that looks up a field of the protocol, which may be empty."""
    return lambda run: _text(getattr(run.protocol, name))


def _setting(part: str, name: str) -> Callable[[RunEntry], str]:
    """Return a function that looks up a prompt or decoding setting; empty for recorded runs."""
    look_up = _of_part(part, name)
    return lambda run: "" if run.protocol.origin else look_up(run)


def _of_part(part: str, name: str) -> Callable[[RunEntry], str]:
    return lambda run: _text(getattr(getattr(run.protocol, part), name, None))


def _sampled(name: str) -> Callable[[RunEntry], str]:
    """Return a function that looks up a sampling setting; empty for greedy runs."""
    look_up, temperature = _setting("decoding", name), _setting("decoding", "temperature")
    return lambda run: "" if temperature(run) in ("", "0") else look_up(run)


def _identity(name: str, length: int | None = None) -> Callable[[RunEntry], str]:
    return lambda run: _text(getattr(run.model_identity, name, None))[:length]


def _form(run: RunEntry) -> str:
    return _of_part("asking", "prompt_form")(run) or _identity("prompt_form")(run)


# Columns that are shown only if the runs differ in them.
SETTINGS: dict[str, Callable[[RunEntry], str]] = {
    "problems": _protocol("problems"),
    "strategy": _protocol("prompt_strategy"),
    "n": _protocol("n_samples"),
    "temperature": _setting("decoding", "temperature"),
    "top-k": _sampled("top_k"),
    "top-p": _setting("decoding", "top_p"),
    "min-p": _setting("decoding", "min_p"),
    "penalty": _setting("decoding", "repetition_penalty"),
    "seed": _sampled("seed"),
    "max-tokens": _setting("decoding", "max_tokens"),
    "form": _form,
    "thinking": _setting("asking", "thinking"),
    "system": _setting("asking", "system"),
    "stop": _setting("asking", "stop"),
    "options": _setting("asking", "engine_options"),
    "imports": _protocol("prompt_imports"),
    "engine": _identity("engine"),
    "format": _identity("variant"),
    WEIGHTS: _identity("weights_sha256", 12),
    "sandbox": _protocol("sandbox"),
    "python": _protocol("python"),
    JUDGE: _protocol("judge"),
}


def history_table(runs: Sequence[RunEntry]) -> list[str]:
    """Return a line per run. Settings are shown only if the runs differ in them."""
    settings = _differing(runs)
    shows_ten = any(run.result and 10 in run.result.pass_at for run in runs)
    ten = ("pass@10",) if shows_ten else ()
    headings = (
        "run", "benchmark", "model", *settings, "pass@1", _level(runs), *ten, "invalid", "protocol",
        "marks",
    )  # fmt: skip
    lines = text.table([headings, *(_row(run, settings, shows_ten=shows_ten) for run in runs)])
    if any(run.result and run.result.results.left_out_as_failed for run in runs):
        lines.append(text.LEFT_OUT_NOTE)
    return lines + text.explain_marks(
        name for run in runs if run.result for name in run.result.marks
    )


def _level(runs: Sequence[RunEntry]) -> str:
    """Return the level of all intervals as ``95 %``, or ``interval`` if they have several."""
    ones = (run.result.pass_at.get(1) for run in runs if run.result)
    found = {text.level(one) for one in ones if one}
    return found.pop() if len(found) == 1 else "interval"


def _differing(runs: Sequence[RunEntry]) -> list[str]:
    values = {name: {find(run) for run in runs} for name, find in SETTINGS.items()}
    for name in OF_SAMPLING:
        values[name] -= {""}  # greedy runs have none
    # Another judge than assay is always listed.
    names = [n for n, found in values.items() if len(found) > 1 or (n == JUDGE and any(found))]
    models = {(run.model, SETTINGS[WEIGHTS](run)) for run in runs}
    if len(models) == len({run.model for run in runs}):  # the names tell them apart
        names = [name for name in names if name != WEIGHTS]
    return names


def _row(run: RunEntry, settings: list[str], *, shows_ten: bool) -> tuple[str, ...]:
    return (
        run.run,
        f"{run.benchmark}{run.selection}",
        run.model,
        *(SETTINGS[name](run) for name in settings),
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
            *(find(run) for find in SETTINGS.values()),
            one and one.value, ten and ten.value, one and one.low, one and one.high,
            run.result and run.result.results.invalid,
            *(getattr(coverage, name, None) for name in COUNTS),
            run.protocol.hash,
            " ".join(run.result.marks) if run.result else "",
        )  # fmt: skip
        writer.writerow(["" if value is None else clean_line(str(value)) for value in row])
    return file.getvalue()
