"""``assay passk``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from assay import runs, scoring
from assay.cli._groups import option
from assay.cli._options import ANY_PATH, as_json
from assay.cli._output import INCOMPLETE, echo, echo_json, echo_result
from assay.data import codec
from assay.data.documents import write_document
from assay.data.printable import quantity
from assay.errors import UsageError
from assay.report.text import describe_gap, level
from assay.scoring import Tally
from assay.scoring.pass_at_k import majority_at_k, pass_hat_k
from assay.types import Estimate

MOST_SAMPLES = 10_000_000


@dataclass(frozen=True, slots=True)
class PassKMeasure:
    """A function of n samples, c right ones and k, and the start of its key in JSON."""

    compute: Callable[[int, int, int], float]
    key: str
    most: int = MOST_SAMPLES


MEASURES = {
    "pass@k": PassKMeasure(scoring.pass_at_k, "pass_at_"),
    "pass^k": PassKMeasure(pass_hat_k, "pass_hat_"),
    "majority@k": PassKMeasure(majority_at_k, "majority_at_", most=100_000),
}


@click.command()
@click.argument("n", type=int, required=False)
@click.argument("c", type=int, required=False)
@click.argument("k", type=int, required=False)
@option("--tsv", "Per-problem TSV file to score instead of N C K.", type=ANY_PATH)
@option(
    "-k", "Value of k for --tsv. Can be repeated. Default: 1, 10 and 100.", "only_k", type=int,
    multiple=True,
)  # fmt: skip
@option(
    "--measure",
    "pass@k: at least one of k samples is right; pass^k: all are; majority@k: more than half are.",
    type=click.Choice(list(MEASURES)),
    default="pass@k",
)
@as_json
def passk(
    n: int | None, c: int | None, k: int | None, tsv: Path | None, only_k: tuple[int, ...],
    measure: str, as_json: bool,
) -> None:  # fmt: skip
    """Compute the unbiased pass@K of N samples with C correct ones, or of a per-problem TSV.

    \b
    Examples:
      assay passk 10 5 1
      assay passk --tsv results/humaneval_20260101_120000.tsv
    """
    if tsv is not None:
        _show_tsv(tsv, only_k, measure, as_json=as_json)
        return
    if n is None or c is None or k is None:
        raise UsageError("N C K: three numbers are needed. Give all of them, or --tsv FILE.")
    if max(n, k) > (most := MEASURES[measure].most):
        raise UsageError(f"N and K: too large. Give at most {most:,}.")
    value = MEASURES[measure].compute(n, c, k)
    key = f"{MEASURES[measure].key}{k}"
    echo_result({key: value}, lambda: [f"{value:.12g}"], as_json=as_json)


def _show_tsv(path: Path, only_k: tuple[int, ...], measure: str, *, as_json: bool) -> None:
    tallies = runs.read_tsv(path)
    estimates = _estimates(path, tallies, only_k, MEASURES[measure])
    coverage = scoring.coverage(tallies, max(tally.n for tally in tallies), len(tallies))
    if as_json:
        record = {f"{MEASURES[measure].key}{e.k}": codec.to_json(e) for e in estimates}
        if not coverage.complete:
            record["coverage"] = write_document(coverage)
        echo_json(record)
    else:
        if gap := describe_gap(coverage):
            echo(f"incomplete: {gap}. The score covers only these.")
        for e in estimates:
            interval = f"[{e.low:.6f}, {e.high:.6f}] ({level(e)})"
            count = quantity(e.problems, "problem")
            echo(f"{measure[:-1]}{e.k} {e.value:.6f} {interval}, {count}")
    if not coverage.complete:
        click.get_current_context().exit(INCOMPLETE)


def _estimates(
    path: Path, tallies: list[Tally], only_k: tuple[int, ...], measure: PassKMeasure
) -> list[Estimate]:
    for tally in tallies:
        if only_k and tally.n < max(only_k):
            raise UsageError(
                f"{tally.task_id}: has {quantity(tally.n, 'sample')}, but pass@{max(only_k)} needs "
                f"{max(only_k)} per problem. Lower -k."
            )
    estimates = scoring.estimates(tallies, only_k or scoring.STANDARD_KS, measure.compute)
    if not estimates:
        raise UsageError(f"{path}: contains no judged samples. Choose another file.")
    return estimates
