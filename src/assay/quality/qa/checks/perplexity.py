"""Compare the model's perplexity on the tier's text with a bound."""

from __future__ import annotations

from assay.models.scoring import open_scorer
from assay.quality import perplexity
from assay.quality.decision import at_most
from assay.quality.perplexity import BUILT_IN, load_text
from assay.quality.qa.examination import Examination, QaCheck, QaItem, qa_checks

NAME = "perplexity"
SHORT_WINDOW = 256  # tokens: short texts have several windows


def _ask(examination: Examination) -> list[QaItem]:
    tier = examination.tier
    assert tier.perplexity_max is not None
    text = load_text(
        tier.text, tier.text_bytes, examination.reporter.note, examination.subject.data_dir
    )
    examination.digests[f"text {text.name}"] = text.sha256
    window = SHORT_WINDOW if text.name == BUILT_IN else 0
    with open_scorer(examination.kept_model()) as scorer:
        result = perplexity.measure(scorer, text.content, min(window, scorer.context))
    low = result.perplexity if result.low is None else result.low
    high = result.perplexity if result.high is None else result.high
    reason = (
        f"{result.perplexity:.2f} [{low:.2f}, {high:.2f}] on {text.name}, at most "
        f"{tier.perplexity_max:g}"
    )
    return [QaItem(NAME, at_most(low, high, tier.perplexity_max), reason, result)]


qa_checks.register(NAME)(
    QaCheck(order=20, is_asked=lambda e: e.tier.perplexity_max is not None, ask=_ask)
)
