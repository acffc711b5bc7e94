"""Parse published scores and targets, which are not ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from assay.data import codec
from assay.report.leaderboard.board import Baseline

Kind = Literal["baseline", "target"]
KEYS: dict[str, Kind] = {"baselines": "baseline", "targets": "target"}
TEXTS = ("source", "notes")  # of a model's scores
FIGURE = "pass@1"  # others have no column


def parse_baselines(content: Any) -> list[Baseline]:
    """Return the scores of a document. Raise ValueError with one line if it is not valid.

    The document is a list of ``{benchmark, model, score, source}``, or has one or both of the keys
    ``baselines`` and ``targets``: such a list, or ``{model: {benchmark: score, source: text}}``. It
    can be a suite's file, which has them in the entries of its ``benchmarks``, or a suite's record.
    A score of null is not known and left out. Other keys are ignored.
    """
    if isinstance(content, list):
        return list(_parse_list(content, "baseline"))
    found: list[Baseline] = []
    entries = content.get("benchmarks") if isinstance(content, dict) else None
    nested = [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []
    if not isinstance(content, dict) or not (KEYS.keys() & content.keys() or nested):
        raise ValueError("has neither a list of scores nor the keys 'baselines' or 'targets'")
    for key, kind in KEYS.items():
        part = content.get(key) or {}
        if not isinstance(part, dict | list):
            raise ValueError(f"{key} is not a list or a mapping")
        found += _parse_list(part, kind) if isinstance(part, list) else _parse_mapping(part, kind)
    for entry in nested:
        found += _parse_benchmark(entry)
    return found


def _parse_benchmark(entry: dict[Any, Any]) -> Iterator[Baseline]:
    """Yield the scores in a suite's entry for a benchmark. Its targets are by figure."""
    name, scores = entry.get("benchmark"), entry.get("baselines") or []
    targets = entry.get("targets") or {}
    if not isinstance(scores, list) or not isinstance(targets, dict):
        raise ValueError(f"{name}: baselines are not a list, or targets are not a mapping")
    rows = [{"benchmark": name, **one} if isinstance(one, dict) else one for one in scores]
    yield from _parse_list(rows, "baseline")
    goals = [{"benchmark": name, "figure": f, "score": score} for f, score in targets.items()]
    yield from _parse_list(goals, "target")


def _parse_list(content: list[Any], kind: Kind) -> Iterator[Baseline]:
    for number, entry in enumerate(content, 1):
        if not isinstance(entry, dict):
            raise ValueError(f"entry {number} is not a mapping")
        if entry.get("figure", FIGURE) != FIGURE or ("score" in entry and entry["score"] is None):
            continue
        given = {k: v for k, v in entry.items() if v is not None and k != "figure"}
        name = {"model": "target"} if kind == "target" else {}
        try:
            yield _check(codec.from_json(Baseline, {"kind": kind, **name, **given}))
        except ValueError as error:
            raise ValueError(f"entry {number}: {error}") from error


def _parse_mapping(content: dict[Any, Any], kind: Kind) -> Iterator[Baseline]:
    for model, scores in content.items():
        if not isinstance(scores, dict):
            raise ValueError(f"{model} has no mapping of benchmarks to scores")
        source = "; ".join(str(scores[name]) for name in TEXTS if scores.get(name))
        for benchmark, score in scores.items():
            if benchmark in TEXTS or score is None:
                continue
            if isinstance(score, bool) or not isinstance(score, int | float):
                raise ValueError(f"{model}, {benchmark}: the score is not a number")
            yield _check(Baseline(str(benchmark), str(model), float(score), source, kind))


def _check(one: Baseline) -> Baseline:
    if not 0 <= one.score <= 1:
        raise ValueError(
            f"{one.model}, {one.benchmark}: the score {one.score:g} is not between 0 and 1"
        )
    return one
