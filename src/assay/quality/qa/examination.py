"""Ask all questions of a tier about a model, and record the decisions with their evidence."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from assay import __version__, models
from assay.data import codec
from assay.data.reading import FileReader
from assay.errors import AssayError, RunError
from assay.models import EngineOptions, Model, ModelReference
from assay.progress import Reporter, Silent
from assay.quality.decision import Decision, overall
from assay.quality.policy import Policy
from assay.registry import Registry
from assay.runs import Result
from assay.types import ModelIdentity

SILENT = Silent()
RESULT_FILES = FileReader(RunError, "Restore it from a copy, or delete it", follow=False)
LONGEST = 96  # tokens of the longest text that a check generates, with its prompt


@dataclass(frozen=True, slots=True)
class QaItem:
    """One question: the decision, the reason, and its figures, a dataclass or plain data."""

    name: str
    decision: Decision
    reason: str
    figures: object = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Subject:
    """The model that is examined, and how it is run."""

    model: ModelReference
    options: EngineOptions
    results_dir: Path
    reference: str = ""  # of the parity; none: the same weights in torch, if the tier asks for it
    data_dir: Path | None = None  # where data is looked for first
    baseline: str = ""  # a run that the model's results are compared with; none: not compared


class Examination:
    """The examination of a model by a tier of a policy, with one load for all questions."""

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

    def add_digest(self, result: Result) -> None:
        """Add the digest of a results file that a decision depends on."""
        content = RESULT_FILES.read_bytes(result.path)
        self.digests[f"result {result.run}"] = hashlib.sha256(content).hexdigest()

    def kept_model(self) -> Model:
        """Return the model, which stays loaded until ``loaded`` is closed."""
        if not self._is_kept:
            self.loaded.enter_context(self.model.keep_loaded())
            self._is_kept = True
        return self.model


@dataclass(frozen=True, slots=True)
class QaCheck:
    """A question that a tier may ask. A file in ``checks`` registers it.

    ``order`` decides which comes first. After a NO-GO of one that ``is_decisive`` nothing more is
    asked.
    """

    order: int
    is_asked: Callable[[Examination], bool]
    ask: Callable[[Examination], list[QaItem]]
    is_decisive: bool = False


qa_checks: Registry[QaCheck] = Registry("qa check", "assay.quality.qa.checks")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The decision, and digests of everything examined, in the order of its JSON."""

    decision: Decision
    tier: str
    model: ModelIdentity
    items: tuple[QaItem, ...]
    sha256: dict[str, str]
    timestamp: str
    assay: str
    platform: str
    python: str


def examine(subject: Subject, policy: Policy, tier: str, reporter: Reporter = SILENT) -> Evidence:
    """Ask all questions with one load of the model. A damaged file gets no more questions."""
    examination = Examination(subject, policy, tier, reporter)
    with examination.loaded:
        items = tuple(_items(examination))
    return Evidence(
        decision=overall(item.decision for item in items),
        tier=examination.tier_name,
        model=examination.model.identity,
        items=items,
        sha256=examination.digests,
        timestamp=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        assay=__version__,
        platform=platform.platform(),
        python=platform.python_version(),
    )


def _items(examination: Examination) -> Iterator[QaItem]:
    checks = {name: qa_checks.get(name) for name in qa_checks.names()}
    names = [name for name, check in checks.items() if check.is_asked(examination)]
    names.sort(key=lambda name: checks[name].order)
    for done, name in enumerate(names):
        examination.reporter.preparing(name, done, len(names))
        items = _ask(name, checks[name], examination)
        yield from items
        if checks[name].is_decisive and overall(item.decision for item in items) == "NO-GO":
            return


def _ask(name: str, check: QaCheck, examination: Examination) -> list[QaItem]:
    """Return the answers. What cannot be found out is inconclusive, never passed."""
    try:
        return check.ask(examination)
    except AssayError as error:
        return [QaItem(name, "INCONCLUSIVE", str(error))]
