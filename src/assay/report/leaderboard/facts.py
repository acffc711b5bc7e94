"""Find the sizes and speeds of models: in their files, or in documents that a user gives."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from assay.data import codec
from assay.datasets import look_up_sha256
from assay.errors import AssayError
from assay.formats.format import find_format, formats
from assay.formats.huggingface.folder import weights_digest
from assay.formats.precision import bits_per_weight
from assay.report.leaderboard.board import ModelFacts
from assay.runs.stores.bench_files import BenchFile, parse_bench
from assay.types import ModelIdentity


def parse_facts(content: Any) -> dict[str, ModelFacts]:
    """Return facts by model. Raise ValueError with one line if the document is not valid.

    The document is the output of ``assay bench``, which names the weights, or maps names of models
    to facts such as ``{file_bytes: 1000000, tokens_per_s: 38.5}``.
    """
    if not isinstance(content, dict):
        raise ValueError("is not a mapping of models to facts, nor the output of `assay bench`")
    if "model_identity" in content and "figures" in content:
        return _parse_bench(content)
    found = {}
    for model, facts in content.items():
        try:
            found[str(model)] = codec.from_json(ModelFacts, facts)
        except ValueError as error:
            raise ValueError(f"{model}: {error}") from error
    return found


def _parse_bench(content: Any) -> dict[str, ModelFacts]:
    try:
        return dict([bench_facts(parse_bench(content))])
    except ValueError as error:
        raise ValueError(f"is not an output of `assay bench` ({error})") from error


def bench_facts(found: BenchFile) -> tuple[str, ModelFacts]:
    """Return the digest of a model's weights, and what ``assay bench`` measured."""
    facts = ModelFacts(tokens_per_s=found.highest_rate, memory_bytes=found.memory_bytes)
    return found.weights, facts


def find_sizes(identities: Iterable[ModelIdentity]) -> dict[str, ModelFacts]:
    """Return the sizes of the models whose files are where they were, by digest of the weights.

    A file that has changed since is left out, and so is one that cannot be read.
    """
    paths = {one.weights_sha256: one.path for one in identities if one.path}
    found = {weights: _measure(Path(path), weights) for weights, path in paths.items()}
    return {weights: facts for weights, facts in found.items() if facts}


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
