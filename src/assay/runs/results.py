"""The results file: what a finished run says, in the shape that docs/results.md documents."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from assay import codec
from assay.borders.printable import clean_line
from assay.borders.reading import Reader
from assay.borders.writing import reporting, write_whole
from assay.errors import RunError
from assay.runs._shapes import CHECKS
from assay.runs.publication import publication_obstacles
from assay.scoring import Tally, as_failed, tally
from assay.scoring import estimates as every_estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from assay.protocol import Protocol
    from assay.runs.folder import RunWriter
    from assay.scoring import BestOfN, Coverage, GroupScore
    from assay.types import Estimate, Verdict

RESULTS_VERSION = 1
TSV_HEADER = ("task_id", "n", "num_passed")
TSV_FILES = Reader(RunError, "Give a file of lines 'task_id<TAB>n<TAB>num_passed'")
EARLIER = Reader(RunError, "Delete it", follow=False, unpack=False)
NO_PROGRAM = "none"  # the extraction rule of a text without a program
NOT_RUN = "not-run"
COUNT = re.compile(r"\s*\d{1,7}\s*")  # samples of a problem: nobody makes ten million


def build_result(
    run: RunWriter,
    protocol: Protocol,
    tallies: Sequence[Tally],
    coverage: Coverage,
    estimates: Sequence[Estimate],
    groups: Sequence[GroupScore] = (),
    unscorable: Mapping[str, str] = MappingProxyType({}),
    prices: tuple[float, float] = (0.0, 0.0),
    best_of_n: BestOfN | None = None,
) -> dict[str, Any]:
    """The results file's content. All that differs between two equal runs is in ``timestamp``,
    ``tests_seed``, ``timing``, ``environment`` and ``run``. ``prices`` are of a million tokens in
    and out.
    """
    reasons: dict[str, list[str]] = {t.task_id: [] for t in tallies}
    completions = {key: c for key, c in run.completions.items() if c.task_id in reasons}
    verdicts = {key: v for key, v in run.verdicts.items() if v.task_id in reasons}
    for verdict in verdicts.values():
        reasons[verdict.task_id].append(verdict.reason)
    environment, *continued_in = run.about["environments"]
    model = run.about["model"]
    tokens_in = sum(c.prompt_tokens for c in completions.values())
    tokens_out = sum(c.tokens_generated for c in completions.values())
    cost = (tokens_in * prices[0] + tokens_out * prices[1]) / 1e6
    obstacles = publication_obstacles(
        coverage, protocol, completions.values(), run.about["environments"]
    )
    return {
        "schema": RESULTS_VERSION,
        "benchmark": protocol.benchmark,
        "model": model["name"],
        "timestamp": run.about["created"],
        "tests_seed": run.tests_seed,
        "publishable": not obstacles,
        "not_publishable": obstacles,
        "coverage": {**codec.to_json(coverage), "complete": coverage.complete},
        "config": {
            **codec.to_json(protocol.decoding),
            **protocol.to_json()["asking"],
            "problem_selection": run.about.get("selection", ""),
            "num_samples": protocol.n_samples,
            "prompt_strategy": protocol.prompt_strategy,
        },
        "results": {
            "total": len(tallies),
            "completed": sum(t.n == protocol.n_samples for t in tallies),
            "passed": sum(t.passed > 0 for t in tallies),
            "samples": len(verdicts),
            "samples_passed": sum(t.passed for t in tallies),
            "errors": sum(v.reason == "generation-error" for v in verdicts.values()),
            "invalid": sum(v.status == "invalid" for v in verdicts.values()),
            "truncated": sum(c.finish_reason == "length" for c in completions.values()),
            **_scores(estimates),
            **_left_out_as_failed(list(reasons), list(verdicts.values())),
            "groups": {
                g.name: {"tests_passed": g.tests_passed, **_scores(g.estimates)} for g in groups
            },
            **({"best_of_n": _best_of_n(best_of_n)} if best_of_n else {}),
            "unscorable": dict(unscorable),
            "unsupported": {
                v.task_id: v.detail for v in verdicts.values() if v.reason == "unsupported"
            },
            "integrity": _counted(map(_integrity, verdicts.values())),
            "reasons": _counted(v.reason for v in verdicts.values()),
        },
        "problems": [
            {**codec.to_json(t), "reasons": _counted(reasons[t.task_id])} for t in tallies
        ],
        "protocol": protocol.to_json(),
        "model_identity": model,
        "environment": environment,
        "continued_in": continued_in,
        "timing": {
            "prompt_tokens": tokens_in,
            "tokens_generated": tokens_out,
            "cost": round(cost, 6) if any(prices) else None,
            "retries": sum(c.retries for c in completions.values()),
            "inference_s": round(sum(c.inference_ms for c in completions.values()) / 1000, 3),
            "judging_cpu_s": round(sum(v.cpu_s for v in verdicts.values()), 3),
            "judging_wall_s": round(sum(v.wall_s for v in verdicts.values()), 3),
        },
        "run": run.path.name,
    }


def write_result(run: RunWriter, result: dict[str, Any], tallies: Sequence[Tally]) -> Path:
    """``<run>.json`` and ``<run>.tsv`` beside the run's folder."""
    path = run.path.with_name(f"{run.path.name}.json")
    rows = [TSV_HEADER, *((clean_line(t.task_id), str(t.n), str(t.passed)) for t in tallies)]
    write_whole(path.with_suffix(".tsv"), "".join("\t".join(row) + "\n" for row in rows))
    write_whole(path, codec.pretty(result))
    return path


def add_checks(path: Path, result: dict[str, Any], checks: Mapping[str, Any]) -> None:
    """Add to a result, and to its file, what was looked into besides the score."""
    result.update(checks)
    write_whole(path, codec.pretty(result))


def kept_checks(run: RunWriter) -> dict[str, Any]:
    """Return what the run's results file says of checks that were made besides the score."""
    found = _earlier_result(run)
    return {name: found[name] for name, fits in CHECKS.items() if fits(found.get(name))}


def kept_selection(run: RunWriter) -> str:
    """Return how the run's results file chose one of n samples, or nothing if it did not."""
    try:
        method = _earlier_result(run)["results"]["best_of_n"]["method"]
    except (KeyError, TypeError):
        return ""
    return method if isinstance(method, str) else ""


def _earlier_result(run: RunWriter) -> dict[str, Any]:
    """Return the content of the run's results file, or nothing if there is none yet."""
    try:
        found = EARLIER.read_json(run.path.with_name(f"{run.path.name}.json"))
    except RunError:
        return {}
    return found if isinstance(found, dict) else {}


def write_evidence(folder: Path, name: str, evidence: Mapping[str, Any]) -> Path:
    """A file of its own for each, named by when it was made."""
    stamp = re.sub(r"\D", "", str(evidence["timestamp"]))[:14]
    path = folder / f"{name}_{stamp[:8]}-{stamp[8:]}.json"
    with reporting(path):
        folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, codec.pretty(evidence))
    return path


def read_tsv(path: Path) -> list[Tally]:
    """The tallies of a per-problem TSV, with or without its header."""
    tallies = []
    for number, line in enumerate(TSV_FILES.read_text(path).splitlines(), 1):
        fields = line.split("\t")
        if tuple(fields) == TSV_HEADER or not line.strip():
            continue
        if len(fields) != len(TSV_HEADER) or not all(map(COUNT.fullmatch, fields[1:])):
            raise RunError(
                f"{path} line {number} is not 'task_id<TAB>n<TAB>num_passed': correct it"
            )
        tallies.append(Tally(fields[0], int(fields[1]), int(fields[2])))
    if not tallies:
        raise RunError(f"{path} holds no problems")
    return tallies


def _scores(estimates: Iterable[Estimate]) -> dict[str, Any]:
    found = list(estimates)
    intervals = {f"pass_at_{e.k}": _interval(e) for e in found}
    return {**{f"pass_at_{e.k}": e.value for e in found}, "intervals": intervals}


def _interval(estimate: Estimate) -> dict[str, Any]:
    return {
        "low": estimate.low,
        "high": estimate.high,
        "problems": estimate.problems,
        "level": estimate.level,
        "method": estimate.method,
    }


def _left_out_as_failed(task_ids: Sequence[str], verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return the scores that a reader must know of if samples are left out of the others."""
    samples = sum(v.status == "invalid" for v in verdicts)
    if not samples:
        return {}
    scores = _scores(every_estimate(tally(task_ids, as_failed(verdicts))))
    return {"left_out_as_failed": {"samples": samples, **scores}}


def _integrity(verdict: Verdict) -> str:
    """Return where the tests ran. Verdicts of earlier versions say that of unrun programs too."""
    if verdict.status == "invalid" or verdict.rule == NO_PROGRAM:
        return NOT_RUN
    return verdict.integrity


def _best_of_n(best: BestOfN) -> dict[str, Any]:
    found = best.estimate
    return {
        "method": best.method,
        "n": best.n,
        "value": found.value,
        "interval": _interval(found),
        "without_examples": best.without_examples,
        "chosen": best.chosen,
    }


def _counted(reasons: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for reason in reasons:
        counts[reason] = counts.get(reason, 0) + 1
    return dict(sorted(counts.items()))
