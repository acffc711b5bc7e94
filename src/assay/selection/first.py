"""Choose the first completion: the same as without a choice."""

from __future__ import annotations

from assay.selection import Method, methods

methods.register("first")(Method(choose=lambda candidates: candidates[0]))
