"""Find how hard problems are, and which look wrong, from the results of several models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from assay.scoring.intervals import LEVEL, VERSION, wilson
from assay.scoring.pass_at_k import Tally

Suspicion = Literal["failed-by-strong", "inverted"]
LEAST_MODELS = 4  # two strong ones and two weak ones
STRONG = 0.5  # a model that passes fewer problems is not called strong


@dataclass(frozen=True, slots=True)
class ProblemDifficulty:
    """The share of models that fail a problem (their mean, if they have several samples).

    The interval is Wilson's over the models, taken as a sample of models.
    """

    task_id: str
    difficulty: float
    low: float
    high: float
    models: int
    level: float = LEVEL
    method: str = "wilson"
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class SuspiciousProblem:
    """A problem to read before its verdicts are trusted.

    ``failed-by-strong``: every strong model fails it. ``inverted``: weak models pass it and strong
    ones fail it. ``strong`` and ``weak`` are the mean shares of passes of the two halves.
    """

    task_id: str
    suspicion: Suspicion
    strong: float
    weak: float


Table = Mapping[str, Sequence[Tally]]  # by model


def difficulties(table: Table) -> list[ProblemDifficulty]:
    """Return the difficulty of every problem, hardest first."""
    found = []
    for task_id, shares in _shares_by_task(table).items():
        failed = 1 - math.fsum(shares.values()) / len(shares)
        low, high = wilson(failed, len(shares))
        found.append(ProblemDifficulty(task_id, failed, low, high, len(shares)))
    return sorted(found, key=lambda one: (-one.difficulty, one.task_id))


def suspicious_problems(table: Table) -> list[SuspiciousProblem]:
    """Return problems that are failed by every strong model, or passed by weaker ones only.

    The strong models are the better half, as far as they pass ``STRONG`` of the problems. The weak
    ones are the others. Nothing is reported for fewer than ``LEAST_MODELS`` models, or if fewer
    than two are strong. A problem can be hard and right, so this is a list to read, not a verdict.
    """
    strong, weak = _halves(table)
    if len(table) < LEAST_MODELS or len(strong) < 2:
        return []
    found = []
    for task_id, shares in _shares_by_task(table).items():
        by_strong = [shares[name] for name in strong if name in shares]
        by_weak = [shares[name] for name in weak if name in shares]
        if len(by_strong) < 2 or any(by_strong):
            continue
        passed = math.fsum(by_weak) / len(by_weak) if by_weak else 0.0
        kind: Suspicion = "inverted" if passed > 0 else "failed-by-strong"
        found.append(SuspiciousProblem(task_id, kind, 0.0, passed))
    return sorted(found, key=lambda one: (-one.weak, one.task_id))


def _halves(table: Table) -> tuple[list[str], list[str]]:
    scores = {name: _mean(tallies) for name, tallies in table.items()}
    ordered = sorted(scores, key=lambda name: -scores[name])
    half = len(ordered) // 2
    strong = [name for name in ordered[:half] if scores[name] >= STRONG]
    return strong, [name for name in ordered if name not in strong]


def _mean(tallies: Sequence[Tally]) -> float:
    shares = [t.passed / t.n for t in tallies if t.n]
    return math.fsum(shares) / len(shares) if shares else 0.0


def _shares_by_task(table: Table) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for name, tallies in table.items():
        for tally in tallies:
            if tally.n:
                found.setdefault(tally.task_id, {})[name] = tally.passed / tally.n
    return found
