"""Parse what users give: published scores and targets, sizes and speeds of models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from assay.data import codec
from assay.datasets import look_up_sha256
from assay.errors import AssayError
from assay.formats.format import bits_per_weight, find_format, formats
from assay.formats.huggingface.folder import weights_digest
from assay.report.leaderboard.board import Baseline, ModelFacts
from assay.runs.stores.bench_files import BenchFile, parse_bench
from assay.types import ModelIdentity

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
    baselines: list[Baseline] = []
    entries = content.get("benchmarks") if isinstance(content, dict) else None
    nested = [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []
    if not isinstance(content, dict) or not (KEYS.keys() & content.keys() or nested):
        raise ValueError("has neither a list of scores nor the keys 'baselines' or 'targets'")
    for key, kind in KEYS.items():
        part = content.get(key) or {}
        if not isinstance(part, dict | list):
            raise ValueError(f"{key} is not a list or a mapping")
        baselines += (
            _parse_list(part, kind) if isinstance(part, list) else _parse_mapping(part, kind)
        )
    for entry in nested:
        baselines += _parse_benchmark(entry)
    return baselines


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
        fields = {k: v for k, v in entry.items() if v is not None and k != "figure"}
        name = {"model": "target"} if kind == "target" else {}
        try:
            yield _check(codec.from_json(Baseline, {"kind": kind, **name, **fields}))
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


def parse_facts(content: Any) -> dict[str, ModelFacts]:
    """Return facts by model. Raise ValueError with one line if the document is not valid.

    The document is the output of ``assay bench``, which names the weights, or maps names of models
    to facts such as ``{file_bytes: 1000000, tokens_per_s: 38.5}``.
    """
    if not isinstance(content, dict):
        raise ValueError("is not a mapping of models to facts, nor the output of `assay bench`")
    if "model_identity" in content and "figures" in content:
        try:
            return dict([bench_facts(parse_bench(content))])
        except ValueError as error:
            raise ValueError(f"is not an output of `assay bench` ({error})") from error
    by_model = {}
    for model, facts in content.items():
        try:
            by_model[str(model)] = codec.from_json(ModelFacts, facts)
        except ValueError as error:
            raise ValueError(f"{model}: {error}") from error
    return by_model


def bench_facts(bench: BenchFile) -> tuple[str, ModelFacts]:
    """Return the digest of a model's weights, and what ``assay bench`` measured."""
    facts = ModelFacts(tokens_per_s=bench.highest_rate, memory_bytes=bench.memory_bytes)
    return bench.weights, facts


def find_sizes(identities: Iterable[ModelIdentity]) -> dict[str, ModelFacts]:
    """Return the sizes of the models whose files are where they were, by digest of the weights.

    A file that has changed since is left out, and so is one that cannot be read.
    """
    paths = {one.weights_sha256: one.path for one in identities if one.path}
    sizes = {weights: _measure(Path(path), weights) for weights, path in paths.items()}
    return {weights: facts for weights, facts in sizes.items() if facts}


def _measure(path: Path, weights: str) -> ModelFacts | None:
    try:
        name = find_format(path)
        if not name or (weights_digest if path.is_dir() else look_up_sha256)(path) != weights:
            return None
        sizes = formats.get(name).sizes(path)
        return ModelFacts(
            file_bytes=sum(s.bytes for s in sizes) if path.is_dir() else path.stat().st_size,
            parameters=formats.get(name).describe(path).parameters or None,
            bits_per_weight=bits_per_weight(path),
        )
    except (AssayError, OSError, ImportError):
        return None
