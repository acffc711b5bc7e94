"""Compare the model's result with that of a baseline, problem by problem."""

from __future__ import annotations

from assay import runs
from assay.quality.decision import at_least
from assay.quality.qa.checks.recorded_scores import is_same_model
from assay.quality.qa.examination import Examination, QaCheck, QaItem, qa_checks
from assay.runs import Comparison, Result

NAME = "baseline"


def _ask(examination: Examination) -> list[QaItem]:
    """Decide whether the model is worse than the baseline by the margin or more.

    The whole interval of the difference must be above the margin's loss for a GO, and below it for
    a NO-GO. A large p-value decides nothing.
    """
    subject = examination.subject
    baseline = runs.find_result(subject.baseline, subject.results_dir)
    name = f"{baseline.benchmark} against {baseline.model}"
    result = _find_result(examination, baseline)
    if result is None:
        reason = (
            f"no complete result of this model with the protocol of {baseline.run}; run "
            f"'assay eval {baseline.benchmark}' with the same settings"
        )
        return [QaItem(name, "INCONCLUSIVE", reason)]
    for one in (baseline, result):
        examination.add_digest(one)
    margin = examination.tier.margin
    comparison = runs.compare(baseline, result, margin=margin)
    decision = at_least(comparison.interval.low, comparison.interval.high, -margin)
    return [QaItem(name, decision, _describe(comparison), comparison)]


def _find_result(examination: Examination, baseline: Result) -> Result | None:
    """Return the newest complete result of exactly this model and the baseline's protocol."""
    listed = runs.collect_runs((), examination.subject.results_dir, examination.reporter.note)
    return next(
        (
            run.result
            for run in listed
            if run.result
            and run.result.complete
            and run.protocol.hash == baseline.protocol.hash
            and is_same_model(run.model_identity, examination.model.identity)
        ),
        None,
    )


def _describe(comparison: Comparison) -> str:
    ends = f"[{100 * comparison.interval.low:+.1f}, {100 * comparison.interval.high:+.1f}]"
    text = (
        f"{100 * comparison.difference:+.1f} points {ends}, gained {len(comparison.gained)}, lost "
        f"{len(comparison.lost)} of {comparison.problems}; at least {-100 * comparison.margin:g}"
    )
    smallest = comparison.detectable.difference
    if comparison.decision == "undecided" and smallest is not None:
        text += f"; this many samples could show {100 * smallest:.1f} points"
    return text


qa_checks.register(NAME)(QaCheck(order=60, is_asked=lambda e: bool(e.subject.baseline), ask=_ask))
