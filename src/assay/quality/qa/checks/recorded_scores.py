"""Compare scores of this model's earlier evaluations with lower bounds."""

from __future__ import annotations

from assay import runs
from assay.data.printable import quantity
from assay.protocol import RecordedProtocol, compute_options
from assay.quality.decision import at_least
from assay.quality.qa.examination import Examination, QaCheck, QaItem, qa_checks
from assay.runs import Result
from assay.types import ModelIdentity

IDENTITY = (
    "engine", "weights_sha256", "tokenizer_sha256", "template_sha256", "prompt_form", "variant",
)  # fmt: skip
USUAL: tuple[str, tuple[str, ...], str] = ("", (), "default")  # system prompt, stop texts, thinking


def _ask(examination: Examination) -> list[QaItem]:
    return [item for name in examination.tier.scores for item in _scores(examination, name)]


def _scores(examination: Examination, benchmark: str) -> list[QaItem]:
    """Decide by the newest complete result of exactly this model."""
    wanted, results_dir = examination.tier.scores[benchmark], examination.subject.results_dir
    results = [
        run.result
        for run in runs.collect_runs((), results_dir, examination.reporter.note)
        if run.result
        and run.benchmark == benchmark
        and is_same_model(run.model_identity, examination.model.identity)
        and _is_asked_as_usual(run.protocol)
    ]
    newest = next((result for result in results if is_whole(result)), None)
    if newest is None:
        partial = f" ({len(results)} incomplete or for selected problems)" if results else ""
        remedy = f"run 'assay eval {benchmark}'"
        reason = f"no result of this model for the whole benchmark{partial}; {remedy}"
        return [QaItem(f"{benchmark} {figure}", "INCONCLUSIVE", reason) for figure in wanted]
    examination.add_digest(newest)
    return [_score(benchmark, figure, least, newest) for figure, least in wanted.items()]


def is_same_model(recorded: ModelIdentity | None, identity: ModelIdentity) -> bool:
    """Return whether a result is for this model: weights, adapter, data type, prompt form."""
    return recorded is not None and all(
        getattr(recorded, name) == getattr(identity, name) for name in IDENTITY
    )


def _is_asked_as_usual(protocol: RecordedProtocol) -> bool:
    """Return whether a result uses none of the user's own prompts or options."""
    asking = protocol.asking
    return (
        asking is not None
        and protocol.prompt_strategy == "standard"
        and protocol.prompt_imports == "prepended"
        and not protocol.judge
        and (asking.system, asking.stop, asking.thinking) == USUAL
        and not compute_options(asking.engine_options)
    )


def is_whole(result: Result) -> bool:
    """Return whether a result covers all problems. Those of earlier versions do not say so."""
    return result.coverage is not None and result.coverage.complete and result.coverage.whole


def _score(benchmark: str, figure: str, least: float, result: Result) -> QaItem:
    name = f"{benchmark} {figure}"
    estimate = {f"pass_at_{k}": one for k, one in result.pass_at.items()}.get(figure)
    if estimate is None:
        k, n = figure.removeprefix("pass_at_"), result.config.num_samples
        why = f"{result.run} does not contain it"
        if k.isdecimal() and int(k) > n:
            samples = quantity(n, "sample")
            why += f": it has {samples} per problem; run 'assay eval {benchmark} --n-samples {k}'"
        return QaItem(name, "INCONCLUSIVE", why)
    return QaItem(
        name,
        at_least(estimate.low, estimate.high, least),
        f"{100 * estimate.value:.1f} % [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}] in "
        f"{result.run}, at least {100 * least:g} %",
        {
            name: getattr(estimate, name)
            for name in ("value", "low", "high", "problems", "level", "method")
        },
    )


qa_checks.register("scores")(QaCheck(order=50, is_asked=lambda e: bool(e.tier.scores), ask=_ask))
