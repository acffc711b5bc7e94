"""Ask all questions of a tier about a model, and record the decisions with their evidence."""

from __future__ import annotations

import datetime
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay import __version__
from assay.errors import AssayError
from assay.quality.decision import Decision, overall
from assay.quality.qa.examination import SILENT, Examination, QaCheck, QaItem, Subject, qa_checks
from assay.types import ModelIdentity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assay.progress import Reporter
    from assay.quality.policy import Policy


@dataclass(frozen=True, slots=True)
class Evidence:
    """Hold the decision, and digests of everything examined, in the order of its JSON."""

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
    return _evidence(examination, items)


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


def _evidence(examination: Examination, items: Sequence[QaItem]) -> Evidence:
    return Evidence(
        decision=overall(item.decision for item in items),
        tier=examination.tier_name,
        model=examination.model.identity,
        items=tuple(items),
        sha256=examination.digests,
        timestamp=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        assay=__version__,
        platform=platform.platform(),
        python=platform.python_version(),
    )
