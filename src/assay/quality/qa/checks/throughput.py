"""Measure quickly how fast the model generates, and compare that with a bound."""

from __future__ import annotations

from assay.quality.bench import BenchConfig, bench_model
from assay.quality.decision import at_least
from assay.quality.qa.examination import LONGEST, Examination, QaCheck, QaItem, qa_checks

NAME = "throughput"
ROUNDS, NEW_TOKENS = 3, 32


def _ask(examination: Examination) -> list[QaItem]:
    least, subject = examination.tier.tokens_per_second_min, examination.subject
    assert least is not None
    config = BenchConfig(
        str(subject.model), subject.options, LONGEST - NEW_TOKENS, NEW_TOKENS, (1,), ROUNDS
    )
    result = bench_model(examination.kept_model(), config)
    spread = result.figures.decode_tokens_per_second
    if spread is None:
        return [QaItem(NAME, "INCONCLUSIVE", "the model stops after one token", result)]
    reason = (
        f"{spread.median:.1f} tokens/s [{spread.min:.1f}, {spread.max:.1f}], at least {least:g}"
    )
    return [QaItem(NAME, at_least(spread.min, spread.max, least), reason, result)]


qa_checks.register(NAME)(
    QaCheck(order=30, is_asked=lambda e: e.tier.tokens_per_second_min is not None, ask=_ask)
)
