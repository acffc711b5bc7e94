"""Compare the model with its reference in float32 on the CPU."""

from __future__ import annotations

from assay import models
from assay.formats.format import precision
from assay.models import EngineOptions
from assay.quality.parity import compare
from assay.quality.perplexity import BUILT_IN, load_text
from assay.quality.qa.examination import Examination, QaCheck, QaItem, qa_checks

NAME = "parity"


def _ask(examination: Examination) -> list[QaItem]:
    subject = examination.subject
    kind = precision(subject.model.path)
    candidate = examination.kept_model()
    if candidate.gpu():  # what is compared is files, not devices
        candidate = models.open_model(str(subject.model), EngineOptions(device="cpu"))
    reference = models.open_model(
        subject.reference or f"hf:{subject.model.path}",
        EngineOptions(device="cpu", dtype="float32"),
    )
    examination.digests["reference weights"] = reference.identity.weights_sha256
    text = load_text(BUILT_IN).content
    parity = compare(candidate, reference, examination.policy.parity[kind], text)
    reason = "; ".join(
        f"{one.name} {one.value:.5g} (bound {one.bound:g})" for one in parity.findings
    )
    return [QaItem(NAME, parity.decision, f"{kind} weights: {reason}", parity)]


qa_checks.register(NAME)(
    QaCheck(order=40, is_asked=lambda e: e.tier.parity or bool(e.subject.reference), ask=_ask)
)
