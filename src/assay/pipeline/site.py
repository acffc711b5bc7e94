"""Define where the work of an evaluation is done: on this machine, or elsewhere.

It stands alone because a cluster implements it too, without the rest of the pipeline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from assay import models, sandbox
from assay.models import EngineOptions, Model
from assay.progress import Announce
from assay.runs import ParityGateOutcome
from assay.sandbox import Sandbox

# Checks the device of a model: its name, its options, the open model, and where notes go.
CheckModel = Callable[[str, EngineOptions, Model, Announce], ParityGateOutcome]


class Site(Protocol):
    """A place for models and sandboxes. The pipeline does not know where they are."""

    def open_model(self, spec: str, options: EngineOptions, announce: Announce) -> Model:
        """Open a model as ``models.open_model`` does."""
        ...

    def open_sandbox(self, kind: str, workers: int, tier: str, python: str) -> Sandbox:
        """Open a sandbox as ``sandbox.open_sandbox`` does."""
        ...

    def check_model(
        self, check: CheckModel, spec: str, options: EngineOptions, model: Model, note: Announce
    ) -> ParityGateOutcome:
        """Return what ``check`` returns where the model's engine runs."""
        ...


class ThisMachine:
    """The site that does everything here."""

    def open_model(self, spec: str, options: EngineOptions, announce: Announce) -> Model:
        return models.open_model(spec, options, announce)

    def open_sandbox(self, kind: str, workers: int, tier: str, python: str) -> Sandbox:
        return sandbox.open_sandbox(kind, workers, tier, python)

    def check_model(
        self, check: CheckModel, spec: str, options: EngineOptions, model: Model, note: Announce
    ) -> ParityGateOutcome:
        return check(spec, options, model, note)


THIS_MACHINE = ThisMachine()
