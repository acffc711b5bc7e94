"""``assay compare``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from assay import runs
from assay.cli._format import benchmark_name, describe_gap, describe_left_out, interval, percent
from assay.cli._options import as_json, option, results_dir
from assay.cli._output import echo, echo_json
from assay.errors import UsageError

DIGEST = re.compile("[0-9a-f]{64}")


@click.command()
@click.argument("a")
@click.argument("b")
@results_dir
@option(
    "--force", is_flag=True, envvar="ASSAY_COMPARE_FORCE",
    help="Compare runs of different protocols, with a warning.",
)  # fmt: skip
@as_json
def compare(a: str, b: str, results_dir: Path, force: bool, as_json: bool) -> None:
    """Compare result B with result A: scores, difference, problems that flipped.

    A and B are results files, or the names of runs that `assay history` lists.

    \b
    Example:
      assay compare results/before.json results/after.json
    """
    first, second = runs.find_result(a, results_dir), runs.find_result(b, results_dir)
    found = runs.compare(first, second)
    differing = "; ".join(
        f"{name}: {_short(x)} / {_short(y)}" for name, x, y in found.protocol_differences
    )
    if differing and not force:
        raise UsageError(f"the protocols differ ({differing}): --force compares all the same")
    if differing:
        echo(f"warning: the protocols differ ({differing})", err=True)
    for name, result in (("A", first), ("B", second)):
        if gap := describe_gap(result):
            common = f"only the {found.problems} problems that both have judged are compared"
            echo(f"warning: {name} is incomplete ({gap}); {common}", err=True)
    if as_json:
        echo_json(found)
        return
    echo(*_lines(found, first, second))


def _short(value: Any) -> str:
    """Return a value of a protocol; of a digest, enough to tell it from others."""
    text = str(value)
    return text[:12] if DIGEST.fullmatch(text) else text


def _lines(found: runs.Comparison, first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    difference = "-" if found.difference is None else f"{100 * found.difference:+.1f} points"
    return [
        f"A  {_score(first)}",
        f"B  {_score(second)}",
        f"B - A  {difference} over {found.problems} problems, sign test p = {found.p_value:.3g}",
        f"gained {len(found.gained)}: {', '.join(found.gained) or '-'}",
        f"lost   {len(found.lost)}: {', '.join(found.lost) or '-'}",
    ]


def _score(result: dict[str, Any]) -> str:
    results = result["results"]
    score = f"{percent(results.get('pass_at_1'))} {interval(results, 'pass_at_1')}"
    score += describe_left_out(results, "pass_at_1")
    run = result.get("run", result["timestamp"])
    return f"pass@1 {score}  {result['model']} on {benchmark_name(result)} ({run})"
