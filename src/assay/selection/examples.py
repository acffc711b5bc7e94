"""Choose the first of the completions that pass most of the prompt's own examples."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from assay.selection import Candidate, Method, methods
from assay.selection._probes import probe

if TYPE_CHECKING:
    from collections.abc import Sequence


def choose(candidates: Sequence[Candidate]) -> Candidate:
    return max(candidates, key=lambda candidate: candidate.seen.right)


methods.register("examples")(Method(choose, functools.partial(probe, checked=True)))
