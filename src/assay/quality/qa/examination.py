"""Share state between the questions about a model, and register the questions."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from assay import models
from assay.data import codec
from assay.models import EngineOptions, ModelReference
from assay.progress import Reporter, Silent
from assay.quality.decision import Decision
from assay.registry import Registry

if TYPE_CHECKING:
    from assay.models import Model
    from assay.quality.policy import Policy

SILENT = Silent()
LONGEST = 96  # tokens of the longest text that a check generates, with its prompt


@dataclass(frozen=True, slots=True)
class NoFigures:
    """Stand for a decision without figures."""


@dataclass(frozen=True, slots=True)
class QaItem:
    """One question: the decision, the reason, and its figures, a dataclass or plain data."""

    name: str
    decision: Decision
    reason: str
    figures: object = field(default_factory=NoFigures)


@dataclass(frozen=True, slots=True)
class Subject:
    """Hold what is examined, and how it is run."""

    model: ModelReference
    options: EngineOptions
    results_dir: Path
    reference: str = ""  # of the parity; none: the same weights in torch, if the tier asks for it
    data_dir: Path | None = None  # where data is looked for first
    baseline: str = ""  # a run that the model's results are compared with; none: not compared


class Examination:
    """Examine a model by a tier of a policy. It is loaded once, for all questions."""

    def __init__(
        self, subject: Subject, policy: Policy, tier: str, reporter: Reporter = SILENT
    ) -> None:
        self.subject, self.policy, self.reporter = subject, policy, reporter
        self.tier_name, self.tier = tier, policy.tier(tier)
        # Digests of everything that was examined, by its description.
        self.digests: dict[str, str] = {"policy": codec.digest(policy)}
        self.loaded, self._is_kept = contextlib.ExitStack(), False

    @cached_property
    def model(self) -> Model:
        """Return the model, with room for the longest text that it must read."""
        options = dataclasses.replace(self.subject.options, longest=LONGEST)
        return models.open_model(str(self.subject.model), options)

    def kept_model(self) -> Model:
        """Return the model, which stays loaded until ``loaded`` is closed."""
        if not self._is_kept:
            self.loaded.enter_context(self.model.keep_loaded())
            self._is_kept = True
        return self.model


@dataclass(frozen=True, slots=True)
class QaCheck:
    """Define a question that a tier may ask. A file in ``checks`` registers it.

    ``order`` decides which comes first. After a NO-GO of one that ``is_decisive`` nothing more is
    asked.
    """

    order: int
    is_asked: Callable[[Examination], bool]
    ask: Callable[[Examination], list[QaItem]]
    is_decisive: bool = False


qa_checks: Registry[QaCheck] = Registry("qa check", "assay.quality.qa.checks")
