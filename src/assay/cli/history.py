"""``assay history``."""

from __future__ import annotations

import csv
import datetime
import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from assay.borders.printable import clean_line
from assay.cli._format import (
    LEFT_OUT_NOTE,
    benchmark_name,
    describe_gap,
    interval,
    percent,
    score,
    table,
)
from assay.cli._options import as_json, option, results_dir
from assay.cli._output import echo, echo_json, echo_text
from assay.errors import UsageError
from assay.runs import list_runs

if TYPE_CHECKING:
    from pathlib import Path

Run = dict[str, Any]
OF_SAMPLING = ("top-k", "seed")
WEIGHTS, JUDGE = "weights", "judge"
DAYS = re.compile(r"(\d{1,5})d")


def _setting(*names: str) -> Callable[[Run], str]:
    """Return a function that looks a protocol's field up; runs of earlier versions lack some."""

    def look_up(run: Run) -> str:
        value: Any = run["protocol"]
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, list):
            return " ".join(map(str, value))
        return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

    return look_up


def _asked(*names: str) -> Callable[[Run], str]:
    """Return the same for how a model was asked, which nobody knows of recorded completions."""
    look_up = _setting(*names)
    return lambda run: "" if run["protocol"].get("origin") else look_up(run)


def _sampled(*names: str) -> Callable[[Run], str]:
    """Return the same for a setting that means nothing where tokens are not drawn."""
    look_up, temperature = _asked(*names), _asked("decoding", "temperature")
    return lambda run: "" if temperature(run) in ("", "0") else look_up(run)


def _identity(name: str, length: int | None = None) -> Callable[[Run], str]:
    return lambda run: str((run.get("model_identity") or {}).get(name, ""))[:length]


# Columns that are listed only where the runs differ in them.
SETTINGS: dict[str, Callable[[Run], str]] = {
    "problems": _setting("problems"),
    "strategy": _setting("prompt_strategy"),
    "n": _setting("n_samples"),
    "temperature": _asked("decoding", "temperature"),
    "top-k": _sampled("decoding", "top_k"),
    "top-p": _asked("decoding", "top_p"),
    "min-p": _asked("decoding", "min_p"),
    "penalty": _asked("decoding", "repetition_penalty"),
    "seed": _sampled("decoding", "seed"),
    "max-tokens": _asked("decoding", "max_tokens"),
    "form": lambda run: _setting("asking", "prompt_form")(run) or _identity("prompt_form")(run),
    "thinking": _asked("asking", "thinking"),
    "system": _asked("asking", "system"),
    "stop": _asked("asking", "stop"),
    "options": _asked("asking", "engine_options"),
    "imports": _setting("prompt_imports"),
    "engine": _identity("engine"),
    "format": _identity("variant"),
    WEIGHTS: _identity("weights_sha256", 12),
    "sandbox": _setting("sandbox"),
    JUDGE: _setting("judge"),
}


@click.command()
@results_dir
@option(
    "--model", default="", envvar="ASSAY_HISTORY_MODEL",
    help="List only models whose name contains this text.",
)  # fmt: skip
@option(
    "--benchmark", default="", envvar="ASSAY_HISTORY_BENCHMARK",
    help="List only runs of this benchmark.",
)  # fmt: skip
@option("--since", default="", metavar="DATE|Nd", help="List only runs since a date or N days ago.")
@option("--limit", type=click.IntRange(min=1), default=50, help="Maximum number of runs.")
@option("--csv", "as_csv", is_flag=True, help="Print comma-separated values with all columns.")
@as_json
def history(
    results_dir: Path,
    model: str,
    benchmark: str,
    since: str,
    limit: int,
    as_csv: bool,
    as_json: bool,
) -> None:
    """List the runs of a results folder, newest first.

    Settings are listed where the runs differ in them.

    \b
    Examples:
      assay history --results-dir results
      assay history --model qwen --benchmark humaneval --since 7d
    """
    earliest = _parse_since(since)
    found = list(list_runs(results_dir, lambda line: echo(f"warning: {line}", err=True)))
    runs = [
        run
        for run in found
        if model.lower() in run["model"].lower()
        and benchmark in ("", run["benchmark"])
        and run["timestamp"][: len(earliest)] >= earliest
    ][:limit]
    if as_json:
        echo_json([{k: v for k, v in run.items() if k != "problems"} for run in runs])
    elif as_csv:
        echo_text(_csv(runs).rstrip("\n"))
    elif runs:
        echo(*table(_rows(runs, _differing(runs))))
        if any("left_out_as_failed" in run.get("results", {}) for run in runs):
            echo(LEFT_OUT_NOTE)
    elif found:
        echo(f"None of the {len(found)} runs in {results_dir} is such a one. Drop a filter.")
    else:
        echo(f"No runs in {results_dir}. Start one with `assay eval`.")


def _parse_since(text: str) -> str:
    """Return the first day as ISO text, or nothing."""
    if not text:
        return ""
    today = datetime.datetime.now(datetime.UTC).date()
    if match := DAYS.fullmatch(text):
        return (today - datetime.timedelta(days=int(match[1]))).isoformat()
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise UsageError(
            f"--since {text}: is not a date. Give one such as {today}, or 7d for seven days."
        ) from error


def _differing(runs: list[Run]) -> list[str]:
    values = {name: {find(run) for run in runs} for name, find in SETTINGS.items()}
    # Another judge than assay is always listed.
    for name in OF_SAMPLING:
        values[name] -= {""}  # greedy runs have none
    names = [n for n, found in values.items() if len(found) > 1 or (n == JUDGE and any(found))]
    models = {(run["model"], SETTINGS[WEIGHTS](run)) for run in runs}
    if len(models) == len({run["model"] for run in runs}):  # the names tell them apart
        names = [name for name in names if name != WEIGHTS]
    return names


def _rows(runs: list[Run], settings: list[str]) -> list[tuple[str, ...]]:
    shows_ten = any(run.get("results", {}).get("pass_at_10") is not None for run in runs)
    ten = ("pass@10",) if shows_ten else ()
    headings = (
        "run", "benchmark", "model", *settings, "pass@1", "95 %", *ten, "invalid", "protocol",
    )  # fmt: skip
    return [headings, *(_row(run, settings, shows_ten=shows_ten) for run in runs)]


def _row(run: Run, settings: list[str], *, shows_ten: bool) -> tuple[str, ...]:
    return (
        run["run"],
        benchmark_name(run),
        run["model"],
        *(SETTINGS[name](run) for name in settings),
        *_scores(run, shows_ten=shows_ten),
        run["protocol"]["hash"][:12],
    )


def _scores(run: Run, *, shows_ten: bool) -> tuple[str, ...]:
    results = run.get("results")
    if results is None:
        return ("unfinished", "", *([""] if shows_ten else []), "")
    one = score(results, "pass_at_1")
    if gap := describe_gap(run):
        one += f" incomplete: {gap}"
    ten = [percent(results.get("pass_at_10"))] if shows_ten else []
    return (one, interval(results, "pass_at_1"), *ten, str(results["invalid"]))


def _csv(runs: list[Run]) -> str:
    """Return one line per run with every setting; scores are numbers between 0 and 1."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    scores = ("pass_at_1", "pass_at_10")
    counts = ("selected_problems", "judged_problems", "samples", "judged_samples", "complete")
    writer.writerow(
        (
            "run", "timestamp", "benchmark", "model", *SETTINGS, *scores, "pass_at_1_low",
            "pass_at_1_high", "invalid", *counts, "protocol",
        )
    )  # fmt: skip
    for run in runs:
        results, coverage = run.get("results") or {}, run.get("coverage") or {}
        ends = results.get("intervals", {}).get("pass_at_1", {})
        row = (
            run["run"], run["timestamp"], benchmark_name(run), run["model"],
            *(find(run) for find in SETTINGS.values()),
            *(results.get(name) for name in scores), ends.get("low"), ends.get("high"),
            results.get("invalid"), *(coverage.get(name) for name in counts),
            run["protocol"]["hash"],
        )  # fmt: skip
        writer.writerow(["" if value is None else clean_line(str(value)) for value in row])
    return file.getvalue()
