"""Choose the first of the largest group of completions that behave alike on the prompt's inputs."""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import TYPE_CHECKING

from assay.selection import Candidate, Conduct, Method, methods
from assay.selection._probes import probe

if TYPE_CHECKING:
    from collections.abc import Sequence


def choose(candidates: Sequence[Candidate]) -> Candidate:
    """Choose the candidate. Failures can agree too, but never win against an answer."""
    alike: dict[tuple[Conduct, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        alike[candidate.seen.conduct, candidate.seen.behaviour].append(candidate)
    return max(alike.items(), key=lambda group: (group[0][0], len(group[1])))[1][0]


methods.register("agreement")(Method(choose, functools.partial(probe, checked=False)))
