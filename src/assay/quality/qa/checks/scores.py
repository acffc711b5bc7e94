"""Hold scores of this model's earlier evaluations against lower bounds."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from assay import runs
from assay.borders.reading import Reader
from assay.errors import RunError
from assay.protocol import compute_options
from assay.quality.decision import at_least
from assay.quality.qa.examination import Examination, Item, QaCheck, qa_checks

if TYPE_CHECKING:
    from assay.types import ModelIdentity

RESULT_FILES = Reader(RunError, "Restore it from a copy, or delete it", follow=False)
IDENTITY = (
    "engine", "weights_sha256", "tokenizer_sha256", "template_sha256", "prompt_form", "variant",
)  # fmt: skip
USUAL: tuple[str, list[str], str] = ("", [], "default")  # system prompt, stop texts, thinking


def _ask(examination: Examination) -> list[Item]:
    return [item for name in examination.tier.scores for item in _scores(examination, name)]


def _scores(examination: Examination, benchmark: str) -> list[Item]:
    """Decide by the newest complete result of exactly this model."""
    wanted, results_dir = examination.tier.scores[benchmark], examination.subject.results_dir
    results = [
        run
        for run in runs.list_runs(results_dir, examination.reporter.note)
        if run["benchmark"] == benchmark
        and "results" in run
        and _is_same_model(run.get("model_identity") or {}, examination.model.identity)
        and _is_asked_as_usual(run["protocol"])
    ]
    newest = next((run for run in results if _is_whole(run)), None)
    if newest is None:
        partial = f" ({len(results)} incomplete or of selected problems)" if results else ""
        reason = (
            f"no result of this model over the whole benchmark{partial}: run assay eval {benchmark}"
        )
        return [Item(f"{benchmark} {figure}", "INCONCLUSIVE", reason) for figure in wanted]
    path = results_dir / f"{newest['run']}.json"
    examination.digests[f"result {newest['run']}"] = hashlib.sha256(
        RESULT_FILES.read_bytes(path)
    ).hexdigest()
    return [_score(benchmark, figure, least, newest) for figure, least in wanted.items()]


def _is_same_model(recorded: dict[str, Any], identity: ModelIdentity) -> bool:
    """Tell whether a result is of this model: weights, adapter, number format, prompt form."""
    return all(recorded.get(name, "") == getattr(identity, name) for name in IDENTITY)


def _is_asked_as_usual(protocol: dict[str, Any]) -> bool:
    """Tell whether a result is of the model as it is: no prompt or option of the user's own."""
    asking = protocol.get("asking")
    if not isinstance(asking, dict) or not isinstance(asking.get("engine_options"), list):
        return False
    return (
        protocol["prompt_strategy"] == "standard"
        and protocol.get("prompt_imports") == "prepended"
        and not protocol.get("judge")
        and (asking.get("system"), asking.get("stop"), asking.get("thinking")) == USUAL
        and not compute_options(map(str, asking["engine_options"]))
    )


def _is_whole(run: dict[str, Any]) -> bool:
    """Tell whether a result is about all problems; those of earlier versions do not say so."""
    coverage = run.get("coverage") or {}
    return bool(coverage.get("complete")) and (
        coverage.get("selected_problems") == coverage.get("benchmark_problems")
    )


def _score(benchmark: str, figure: str, least: float, result: dict[str, Any]) -> Item:
    name, run = f"{benchmark} {figure}", result["run"]
    found = (result["results"].get("intervals") or {}).get(figure)
    if found is None or result["results"].get(figure) is None:
        return Item(name, "INCONCLUSIVE", f"{run} does not tell it")
    low, high, value = found["low"], found["high"], result["results"][figure]
    return Item(
        name,
        at_least(low, high, least),
        f"{100 * value:.1f} % [{100 * low:.1f}, {100 * high:.1f}] in {run}, at least "
        f"{100 * least:g} %",
        {"value": value, **found},
    )


qa_checks.register("scores")(QaCheck(order=50, is_asked=lambda e: bool(e.tier.scores), ask=_ask))
