"""The parity gate, as commands that evaluate use it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from assay import codec
from assay.errors import ModelError, UsageError
from assay.quality.parity_gate import Gate, passed_gate
from assay.quality.policy import load_policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.models import EngineOptions, Model


def gated(
    spec: str,
    options: EngineOptions,
    model: Model,
    *,
    publishable: bool,
    wanted: bool,
    note: Callable[[str], None],
) -> dict[str, Any]:
    """What the gate says, for the result; an error if that forbids to go on."""
    if publishable and not wanted:
        raise UsageError("--publishable results pass the parity gate: drop --no-parity-gate")
    if not wanted:
        return dict(codec.to_json(Gate("off")))
    found = passed_gate(spec, options, load_policy().gate, note, model=model)
    if found.state == "failed":
        raise ModelError(
            f"{found.device} does not compute as the CPU does ({'; '.join(found.reasons)}): mend "
            "its driver or library, or give --device cpu"
        )
    if publishable and found.state == "no-gpu":
        raise UsageError(
            "a publishable result is made on a GPU, and none would be used here: give a model that "
            "runs on one, or drop --publishable"
        )
    if found.state == "passed":
        known = " (known)" if found.cached else ""
        note(f"parity gate: {found.device} computes as the CPU does{known}")
    # Whether it was known before is no part of where completions are made.
    return dict(codec.to_json(dataclasses.replace(found, cached=False)))
