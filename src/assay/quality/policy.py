"""Thresholds, from a YAML file; what a file leaves out is as in our own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from assay.borders.reading import Reader
from assay.errors import UsageError
from assay.quality.texts import BUILT_IN
from assay.quality.yaml_files import parse_yaml

if TYPE_CHECKING:
    from pathlib import Path

POLICIES = Reader(UsageError, "Give a YAML file; see docs/quality.md", 1 << 18, unpack=False)
Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike logits must be at least; no perplexity for the gate."""

    cosine: float
    top1: float
    perplexity_gap: float | None = None


@dataclass(frozen=True, slots=True)
class Tier:
    """What a model must show; None: nothing."""

    check: bool
    text: str
    text_bytes: int
    perplexity_max: float | None
    tokens_per_second_min: float | None
    parity: bool
    scores: dict[str, dict[str, float]]  # by benchmark and figure, lower bounds


@dataclass(frozen=True, slots=True)
class Policy:
    parity: dict[str, Likeness]  # by the weights' precision
    gate: Likeness
    tiers: dict[str, Tier]

    def tier(self, name: str) -> Tier:
        if name not in self.tiers:
            raise UsageError(f"the policy has no tier {name}: choose {', '.join(self.tiers)}")
        return self.tiers[name]


def load_policy(path: Path | None = None) -> Policy:
    """Ours, or ours with what the file says instead; UsageError for what is no policy."""
    tree = _parsed(resources.files("assay.quality").joinpath("policy.yaml").read_text(), "policy")
    if path is None:
        return _made(tree)
    given = _parsed(POLICIES.read_text(path), str(path))
    try:
        return _made(_over(tree, given, ""))
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UsageError(f"{path} is no policy ({error}): see docs/quality.md") from error


def _parsed(text: str, name: str) -> Tree:
    try:
        found = parse_yaml(text)
    except ValueError as error:
        raise UsageError(f"{name} is not valid YAML ({error}): see docs/quality.md") from error
    if len(found) != 1 or not isinstance(found[0], dict):
        raise UsageError(f"{name} is no policy: it must have parity, gate or tiers")
    return dict(found[0])


def _over(ours: Tree, theirs: Tree, where: str) -> Tree:
    """Theirs where both have something; tiers, precisions and scores may be new."""
    open_ended = where in ("tiers.", "parity.") or ".scores." in where or where.endswith("scores.")
    merged = dict(ours)
    for key, value in theirs.items():
        if key not in ours and not open_ended:
            raise ValueError(f"unknown {where}{key}")
        if isinstance(ours.get(key), dict):
            if not isinstance(value, dict):
                raise ValueError(f"{where}{key} must have entries")
            value = _over(ours[key], value, f"{where}{key}.")
        merged[key] = value
    return merged


def _made(tree: Tree) -> Policy:
    return Policy(
        parity={str(name): _likeness(found) for name, found in tree["parity"].items()},
        gate=_likeness(tree["gate"]),
        tiers={str(name): _tier(str(name), found) for name, found in tree["tiers"].items()},
    )


def _likeness(found: Tree) -> Likeness:
    return Likeness(**{key: _number(value) for key, value in found.items()})


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is not a threshold")
    return number


def _tier(name: str, found: Tree) -> Tier:
    """Of a new tier, what it does not name is not asked for."""
    if unknown := set(found) - set(Tier.__slots__):
        raise ValueError(f"unknown tiers.{name}.{sorted(unknown)[0]}")

    def bound(key: str) -> float | None:
        return None if found.get(key) is None else _number(found[key])

    return Tier(
        check=bool(found.get("check", False)),
        text=str(found.get("text", BUILT_IN)),
        text_bytes=int(found.get("text_bytes", 0)),
        perplexity_max=bound("perplexity_max"),
        tokens_per_second_min=bound("tokens_per_second_min"),
        parity=bool(found.get("parity", False)),
        scores={
            str(benchmark): {str(figure): _number(least) for figure, least in figures.items()}
            for benchmark, figures in (found.get("scores") or {}).items()
        },
    )
