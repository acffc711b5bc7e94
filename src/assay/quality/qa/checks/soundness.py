"""Check the model's file by the stages of ``assay check``."""

from __future__ import annotations

from assay.quality.check.stages import check
from assay.quality.qa.examination import Examination, QaCheck, QaItem, qa_checks

NAME = "check"


def _ask(examination: Examination) -> list[QaItem]:
    stages = list(check(str(examination.subject.model), model=examination.kept_model))
    broken = [stage for stage in stages if stage.status == "fail"]
    figures = {stage.name: f"{stage.status}: {stage.reason}" for stage in stages}
    if broken:
        reason = "; ".join(f"{stage.name}: {stage.reason}" for stage in broken)
        return [QaItem(NAME, "NO-GO", reason, figures)]
    skipped = [stage.name for stage in stages if stage.status == "skipped"]
    note = f", skipped {', '.join(skipped)}" if skipped else ""
    return [QaItem(NAME, "GO", f"{len(stages) - len(skipped)} stages pass{note}", figures)]


qa_checks.register(NAME)(
    QaCheck(order=10, is_asked=lambda e: e.tier.check, ask=_ask, is_decisive=True)
)
