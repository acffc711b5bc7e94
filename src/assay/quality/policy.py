"""Read thresholds from a YAML file. Our own file has the defaults."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING

from assay.data import codec
from assay.data.reading import FileReader
from assay.data.yaml_files import parse_yaml
from assay.errors import UsageError
from assay.quality.perplexity import BUILT_IN
from assay.scoring.decisions import MARGIN

if TYPE_CHECKING:
    from pathlib import Path

POLICIES = FileReader(UsageError, "Give a YAML file; see docs/quality.md", 1 << 18, unpack=False)


@dataclass(frozen=True, slots=True)
class Likeness:
    """Hold how similar logits must be. The gate has no bound for perplexity."""

    cosine: float
    top1: float
    perplexity_gap: float | None = None


@dataclass(frozen=True, slots=True)
class PolicyTier:
    """The demands on a model. None means no demand."""

    check: bool = False
    text: str = BUILT_IN
    text_bytes: int = 0
    perplexity_max: float | None = None
    tokens_per_second_min: float | None = None
    parity: bool = False
    # Lower bounds by benchmark and figure.
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    margin: float = MARGIN  # by which pass@1 may be below that of a baseline


@dataclass(frozen=True, slots=True)
class Policy:
    parity: dict[str, Likeness]  # by the weights' precision
    gate: Likeness
    tiers: dict[str, PolicyTier]

    def tier(self, name: str) -> PolicyTier:
        if name not in self.tiers:
            raise UsageError(f"tier {name}: not in the policy. Choose {', '.join(self.tiers)}.")
        return self.tiers[name]


def load_policy(path: Path | None = None) -> Policy:
    """Return our policy with the file's changes. Raise UsageError if it is not a policy."""
    merged = _parse(resources.files("assay.quality").joinpath("policy.yaml").read_text(), "policy")
    if path is not None:
        merged = _merge(merged, _parse(POLICIES.read_text(path), str(path)))
    try:
        json.dumps(merged, allow_nan=False)  # NaN and infinity are not thresholds
        return codec.from_json(Policy, merged)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"{path}: is not a policy ({error}). See docs/quality.md.") from error


def _parse(text: str, name: str) -> object:
    try:
        (found,) = parse_yaml(text) or [None]
    except ValueError as error:
        raise UsageError(f"{name}: is not valid YAML ({error}). See docs/quality.md.") from error
    return found


def _merge(ours: object, theirs: object) -> object:
    """Return their entries, and ours where they leave one out."""
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        return theirs
    changed = {str(name): _merge(ours.get(str(name)), value) for name, value in theirs.items()}
    return {**ours, **changed}
