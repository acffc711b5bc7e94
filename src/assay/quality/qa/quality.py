"""The gate before a model is released: all that is known of it, against a policy."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import hashlib
import platform
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay import __version__, codec, models, runs
from assay.borders.reading import Reader
from assay.errors import AssayError, RunError
from assay.formats.precision import precision
from assay.models.scoring import open_scorer
from assay.protocol import compute_options
from assay.quality import perplexity
from assay.quality.bench import BenchConfig, bench_model
from assay.quality.check.stages import check
from assay.quality.decision import Decision, at_least, at_most, overall
from assay.quality.parity import compare
from assay.quality.texts import BUILT_IN, load_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.models import EngineOptions, Model, ModelReference
    from assay.quality.policy import Policy
    from assay.types import ModelIdentity

RESULT_FILES = Reader(RunError, "Restore it from a copy, or delete it", follow=False)
IDENTITY = (
    "engine", "weights_sha256", "tokenizer_sha256", "template_sha256", "prompt_form", "variant",
)  # fmt: skip
USUAL: tuple[str, list[str], str] = ("", [], "default")  # system prompt, stop texts, thinking
ROUNDS, NEW_TOKENS, PROMPT_TOKENS = 3, 32, 64  # of the throughput's quick measurement


@dataclass(frozen=True, slots=True)
class Item:
    """One question: the decision, why, and the figures behind it."""

    name: str
    decision: Decision
    reason: str
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is looked at, and how it is run."""

    model: ModelReference
    options: EngineOptions
    results_dir: Path
    reference: str = ""  # of the parity; none: the same weights in torch, if the tier asks for it
    data_dir: Path | None = None  # where data is looked for first


class Quality:
    """Asks all questions of a tier, in turn; ``note`` is told what it does."""

    def __init__(
        self, subject: Subject, policy: Policy, tier: str, note: Callable[[str], None]
    ) -> None:
        self._subject, self._policy, self._note = subject, policy, note
        self._tier_name, self._tier = tier, policy.tier(tier)
        self._digests: dict[str, str] = {"policy": codec.digest(codec.to_json(policy))}
        self._loaded, self._is_kept = contextlib.ExitStack(), False

    def items(self) -> list[Item]:
        """Ask with one load of the model; a damaged file is asked nothing more."""
        with self._loaded:
            return self._items()

    def _items(self) -> list[Item]:
        tier, found = self._tier, []
        if tier.check:
            found.append(self._asked("check", self._check))
            if found[0].decision == "NO-GO":
                return found
        if tier.perplexity_max is not None:
            found.append(self._asked("perplexity", self._perplexity))
        if tier.tokens_per_second_min is not None:
            found.append(self._asked("throughput", self._throughput))
        if tier.parity or self._subject.reference:
            found.append(self._asked("parity", self._parity))
        for benchmark in tier.scores:
            found += self._scores(benchmark)
        return found

    @functools.cached_property
    def _model(self) -> Model:
        """The model, with room for the longest text that is asked of it."""
        options = dataclasses.replace(self._subject.options, longest=PROMPT_TOKENS + NEW_TOKENS)
        return models.open_model(str(self._subject.model), options)

    def _kept_model(self) -> Model:
        """Return the model, which stays loaded until all items are there."""
        if not self._is_kept:
            self._loaded.enter_context(self._model.kept_loaded())
            self._is_kept = True
        return self._model

    def evidence(self, items: list[Item]) -> dict[str, Any]:
        """What was decided, by what, on what: digests of everything that was looked at."""
        return {
            "decision": overall(item.decision for item in items),
            "tier": self._tier_name,
            "model": codec.to_json(self._model.identity),
            "items": [codec.to_json(item) for item in items],
            "sha256": self._digests,
            "timestamp": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "assay": __version__,
            "platform": platform.platform(),
            "python": platform.python_version(),
        }

    def _asked(self, name: str, question: Callable[[], Item]) -> Item:
        """What cannot be found out is not known, never passed."""
        self._note(name)
        try:
            return question()
        except AssayError as error:
            return Item(name, "INCONCLUSIVE", str(error))

    def _check(self) -> Item:
        found = list(check(str(self._subject.model), model=self._kept_model))
        broken = [stage for stage in found if stage.status == "fail"]
        figures = {stage.name: f"{stage.status}: {stage.reason}" for stage in found}
        if broken:
            reason = "; ".join(f"{stage.name}: {stage.reason}" for stage in broken)
            return Item("check", "NO-GO", reason, figures)
        skipped = [stage.name for stage in found if stage.status == "skipped"]
        told = f", skipped {', '.join(skipped)}" if skipped else ""
        return Item("check", "GO", f"{len(found) - len(skipped)} stages pass{told}", figures)

    def _perplexity(self) -> Item:
        tier = self._tier
        text = load_text(tier.text, tier.text_bytes, self._note, self._subject.data_dir)
        self._digests[f"text {text.name}"] = text.sha256
        window = 256 if text.name == BUILT_IN else 0  # short texts, several windows
        with open_scorer(self._kept_model()) as scorer:
            found = perplexity.measure(scorer, text.content, min(window, scorer.context))
        assert tier.perplexity_max is not None
        low = found.perplexity if found.low is None else found.low
        high = found.perplexity if found.high is None else found.high
        return Item(
            "perplexity",
            at_most(low, high, tier.perplexity_max),
            f"{found.perplexity:.2f} [{low:.2f}, {high:.2f}] on {text.name}, at most "
            f"{tier.perplexity_max:g}",
            codec.to_json(found),
        )

    def _throughput(self) -> Item:
        config = BenchConfig(
            str(self._subject.model), self._subject.options, PROMPT_TOKENS, NEW_TOKENS, (1,), ROUNDS
        )
        told = bench_model(self._kept_model(), config, _Quiet())
        spread = told["figures"]["decode_tokens_per_second"]
        least = self._tier.tokens_per_second_min
        assert least is not None
        if spread is None:
            return Item("throughput", "INCONCLUSIVE", "the model ends after one token", told)
        return Item(
            "throughput",
            at_least(spread["min"], spread["max"], least),
            f"{spread['median']:.1f} tokens/s [{spread['min']:.1f}, {spread['max']:.1f}], at "
            f"least {least:g}",
            told,
        )

    def _parity(self) -> Item:
        path = self._subject.model.path
        kind = precision(path)
        candidate = self._kept_model()
        if candidate.gpu():  # what is compared is files, not devices
            candidate = models.open_model(
                str(self._subject.model), models.EngineOptions(device="cpu")
            )
        reference = models.open_model(
            self._subject.reference or f"hf:{path}",
            models.EngineOptions(device="cpu", dtype="float32"),
        )
        self._digests["reference weights"] = reference.identity.weights_sha256
        text = load_text(BUILT_IN).content
        found = compare(candidate, reference, self._policy.parity[kind], text, lambda _: None)
        reason = "; ".join(
            f"{one.name} {one.value:.5g} (bound {one.bound:g})" for one in found.findings
        )
        return Item("parity", found.decision, f"{kind} weights: {reason}", codec.to_json(found))

    def _scores(self, benchmark: str) -> list[Item]:
        """Decide by the newest complete result of exactly this model."""
        wanted = self._tier.scores[benchmark]
        results = [
            run
            for run in runs.list_runs(self._subject.results_dir, self._note)
            if run["benchmark"] == benchmark
            and "results" in run
            and _is_same_model(run.get("model_identity") or {}, self._model.identity)
            and _is_asked_as_usual(run["protocol"])
        ]
        newest = next((run for run in results if _is_whole(run)), None)
        if newest is None:
            partial = f" ({len(results)} incomplete or of selected problems)" if results else ""
            reason = (
                f"no result of this model over the whole benchmark{partial}: "
                f"run assay eval {benchmark}"
            )
            return [Item(f"{benchmark} {figure}", "INCONCLUSIVE", reason) for figure in wanted]
        path = self._subject.results_dir / f"{newest['run']}.json"
        self._digests[f"result {newest['run']}"] = hashlib.sha256(
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


class _Quiet:
    """Sees nothing of a measurement's steps."""

    def note(self, text: str) -> None: ...

    def step(self, done: int, total: int, what: str) -> None: ...
