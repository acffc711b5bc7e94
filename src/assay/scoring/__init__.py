"""From verdicts to pass@k: pure functions."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from assay.scoring.intervals import clustered_wilson, wilson
from assay.scoring.paired import sign_test
from assay.scoring.pass_at_k import pass_at_k
from assay.types import Estimate, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from assay.types import Verdict

__all__ = ["clustered_wilson", "estimate", "estimates", "pass_at_k", "sign_test", "tally", "wilson"]

STANDARD_KS = (1, 10, 100)


def tally(task_ids: Sequence[str], verdicts: Iterable[Verdict]) -> list[Tally]:
    """Right and judged samples per problem, in the order of ``task_ids``; invalid ones left out."""
    judged: dict[str, list[bool]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.status != "invalid":
            judged[verdict.task_id].append(verdict.status == "pass")
    return [Tally(t, len(judged[t]), sum(judged[t])) for t in task_ids]


def estimate(tallies: Iterable[Tally], k: int) -> Estimate | None:
    """pass@k, averaged over the problems that have k judged samples; None where none has."""
    enough = [t for t in tallies if t.n >= k]
    if not enough:
        return None
    values = [pass_at_k(t.n, t.passed, k) for t in enough]
    low, high = clustered_wilson(values, sum(t.n for t in enough))
    return Estimate(k, math.fsum(values) / len(values), low, high, len(values))


def estimates(tallies: Sequence[Tally], ks: Iterable[int] = STANDARD_KS) -> list[Estimate]:
    """Every pass@k of ``ks`` that these samples can give."""
    return [e for k in ks if (e := estimate(tallies, k)) is not None]
