"""From a model to a score: evaluations, and scores of completions made elsewhere."""

from __future__ import annotations

import dataclasses
import platform
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from assay import (
    __version__,
    benchmarks,
    codec,
    extract,
    models,
    runs,
    sandbox,
    scoring,
    selection,
)
from assay.errors import UsageError
from assay.extract.workers import Extractor
from assay.fetch import cache_dir
from assay.machine import usable_cores
from assay.models import EngineOptions
from assay.pipeline import references
from assay.pipeline.asking import (
    check_texts,
    describe_form,
    refuse_for_recorded,
    resolve_asking,
)
from assay.pipeline.best_of_n import best_of_n
from assay.pipeline.config import ALL, STANDARD, EvalConfig, JudgeConfig, ScoreConfig
from assay.pipeline.decoding import Sampling
from assay.pipeline.problems import ProblemSelection
from assay.pipeline.prompt_imports import surround
from assay.pipeline.samples import (
    Samples,
    Selected,
    check_strategy,
    match_samples,
    recorded_samples,
)
from assay.pipeline.stream import Observer, Stream, sample_seed
from assay.prompts import strategies
from assay.protocol import VERSION, Protocol
from assay.sandbox import environments
from assay.types import Benchmark, SampleKey

__all__ = [
    "ALL", "EngineOptions", "EvalConfig", "Evaluation", "JudgeConfig", "Observer",
    "ProblemSelection", "Sampling", "ScoreConfig", "check_references", "environment", "evaluate",
    "evaluate_all", "flaky", "recorded", "references", "sample_seed", "score",
    "select_problems",
]  # fmt: skip

LONG_S = 2.0
MOST_WORKERS = 1024


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A finished run: the results file's content and its path."""

    result: dict[str, Any]
    path: Path


def evaluate(config: EvalConfig, observer: Observer) -> Evaluation:
    """Run (or continue) the evaluation and write its results file."""
    decoding = config.sampling.resolve()  # wrong options are told before anything is loaded
    _check_workers(config)
    check_texts(config.system, config.stop)
    strategy = strategies.get(config.prompt_strategy)
    selected = select_problems(config, observer)
    engine = config.engine
    if config.select and selection.methods.get(config.select).logprobs:
        engine = dataclasses.replace(engine, logprobs=True)
    model = models.open_model(config.model, engine, observer.note)
    numbers = range(config.sampling.n_samples)
    keys = [(problem.task_id, s) for problem in selected.benchmark.problems for s in numbers]
    gate = {"parity_gate": config.gate()}
    check_strategy(config, model)
    if isinstance(model, models.RecordedModel):
        refuse_for_recorded(config.system, config.stop, decoding)
        samples = recorded_samples(model, keys)
    else:
        decoding = config.sampling.resolve(thinks=model.thinks)
        if model.thinks and config.sampling.max_tokens is None:
            observer.note(f"the model's template lets it think: max-tokens {decoding.max_tokens}")
        observer.note(describe_form(model.identity))
        form = model.identity.prompt_form
        asking = resolve_asking(form, config.engine, config.system, config.stop)
        samples = Samples(keys, strategy, asking, decoding)
    benchmark = surround(selected.benchmark, config.prompt_imports, model.identity.prompt_form)
    return _judged(config, selected, benchmark, samples, model, observer, gate)


def evaluate_all(config: EvalConfig, observer: Observer) -> list[Evaluation]:
    """With every prompt strategy in turn, the usual one first."""
    evaluations = []
    check_strategy(config, models.open_model(config.model, config.engine, observer.note))
    for name in sorted(strategies.names(), key=lambda name: name != STANDARD):
        observer.note(f"prompt strategy {name}")
        evaluations.append(evaluate(dataclasses.replace(config, prompt_strategy=name), observer))
    return evaluations


def score(config: ScoreConfig, observer: Observer) -> Evaluation:
    """Judge completions made elsewhere: all those in the file, and no others."""
    _check_workers(config)
    if config.select:
        selection.methods.get(config.select)
    selected = select_problems(config, observer)
    benchmark, model, keys = match_samples(config, selected, observer)
    samples = recorded_samples(model, keys)
    return _judged(config, selected, benchmark, samples, model, observer)


def recorded(
    config: ScoreConfig, observer: Observer
) -> tuple[Benchmark, models.RecordedModel, list[SampleKey]]:
    """Completions made elsewhere, and the part of the benchmark that they are for."""
    return match_samples(config, select_problems(config, observer), observer)


def check_references(config: JudgeConfig, observer: Observer) -> dict[str, str]:
    """Run all reference solutions anew: for every task, why it fails; nothing where it passes."""
    benchmark = _loaded(config, observer)
    judge = _open_sandbox(config, observer)
    try:
        unscorable = references.check(benchmark, judge, observer, again=True).unscorable
    finally:
        judge.close()
    return {p.task_id: unscorable.get(p.task_id, "") for p in benchmark.problems}


def flaky(
    config: ScoreConfig, scored: Evaluation, rounds: int, observer: Observer
) -> dict[str, list[str]]:
    """Execute everything again, ``rounds`` times: the samples whose verdict changed.

    Keyed ``task_id#sample``, with the status of each execution, the first one first.
    """
    seen = {key: [status] for key, status in _statuses(scored).items()}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            again = dataclasses.replace(
                config, results_dir=Path(folder), no_cache=True, select="",
                tests_seed=scored.result["tests_seed"],
            )  # fmt: skip
            for key, status in _statuses(score(again, observer)).items():
                seen[key].append(status)
    return {f"{t}#{s}": found for (t, s), found in seen.items() if len(set(found)) > 1}


def _statuses(evaluation: Evaluation) -> dict[SampleKey, str]:
    run = runs.RecordedRun(evaluation.path.with_suffix(""))
    return {key: verdict.status for key, verdict in run.verdicts.items()}


def _judged(
    config: JudgeConfig,
    selected: Selected,
    benchmark: Benchmark,  # those of the selected problems that there are samples of
    samples: Samples,
    model: models.Model,
    observer: Observer,
    device: Mapping[str, Any] = MappingProxyType({}),  # where completions are made
) -> Evaluation:
    judge = _open_sandbox(config, observer)
    extractor = Extractor(config.workers)
    try:
        checked = references.check(benchmark, judge, observer, again=config.check_references)
        benchmark = checked.benchmark
        capabilities = judge.capabilities()
        most = max(Counter(task_id for task_id, _ in samples.keys).values(), default=0)
        task_ids = [p.task_id for p in selected.benchmark.problems]
        protocol = _protocol(config, benchmark, task_ids, samples, most, judge)
        cache = _verdict_cache(capabilities, protocol.environment)
        run = runs.open_run(
            config.results_dir, protocol, model.identity,
            fresh=config.fresh, tests_seed=config.tests_seed, selection=selected.label,
            name=_given_name(config), warn=observer.note,
        )  # fmt: skip
        try:
            _check_device(config, run)
            stream = Stream(
                benchmark, samples.strategy, protocol, model, judge, extractor, run,
                None if config.no_cache else cache, checked.unscorable, observer,
            )  # fmt: skip
            known = {"sandbox": codec.to_json(capabilities), **device}
            keys = _long_first(samples.keys, checked.seconds)
            stream.flow(keys, lambda: environment(model) | known)
            wanted = set(task_ids)
            verdicts = [v for v in run.verdicts.values() if v.task_id in wanted]
            tallies = scoring.tally(task_ids, verdicts)
            best = None
            if (method := config.select or runs.kept_selection(run)) and most > 1:
                form = model.identity.prompt_form
                try:
                    best = best_of_n(method, most, benchmark, form, run, judge, extractor, observer)
                except UsageError as error:
                    if config.select:
                        raise
                    observer.note(f"the choice by {method} is left out: {error}")
            elif config.select:
                observer.note("--select has nothing to choose from: there is one sample a problem")
            result = runs.build_result(
                run, protocol, tallies,
                scoring.coverage(tallies, most, selected.total), scoring.estimates(tallies),
                scoring.group_scores(task_ids, verdicts, _groups(benchmark)), checked.unscorable,
                _prices(config),
                best,
            )  # fmt: skip
            return Evaluation(result, runs.write_result(run, result, tallies))
        finally:
            run.close()
    finally:
        extractor.close()
        judge.close()


def _given_name(config: JudgeConfig) -> str:
    if isinstance(config, EvalConfig):
        return config.engine.name
    return config.model_name if isinstance(config, ScoreConfig) else ""


def _check_device(config: JudgeConfig, run: runs.RunFolder) -> None:
    """Raise UsageError if a GPU is asked for and the run to be resumed did not use one."""
    wanted = config.engine.device if isinstance(config, EvalConfig) else "auto"
    if wanted == "cuda" and not all(c.used_gpu for c in run.completions.values()):
        raise UsageError(
            f"{run.path}: has completions that were generated without a GPU. Use --fresh to "
            "generate all of them with --device cuda."
        )


def _open_sandbox(config: JudgeConfig, observer: Observer) -> sandbox.Sandbox:
    """Open the sandbox; a tier that is weaker than it could be is never taken without a word."""
    judge = sandbox.open_sandbox(config.sandbox, config.workers, config.sandbox_tier)
    found = judge.capabilities()
    for refused in found.refused:
        observer.note(f"sandbox tier {found.tier}, since a stronger one is refused: {refused}")
    return judge


def _verdict_cache(found: sandbox.Capabilities, environment: str) -> runs.VerdictCache:
    image = [found.image] if found.image else []  # two of them may have the same Python
    return runs.VerdictCache(
        cache_dir() / "verdicts", found.kind, found.tier, found.python, environment, *image
    )


def _long_first(keys: list[SampleKey], seconds: dict[str, float]) -> list[SampleKey]:
    """What takes long to judge does not begin when all others are done; else the order stays."""

    def haste(key: SampleKey) -> float:
        needed = seconds.get(key[0], 0.0)
        return -needed if needed > LONG_S else 0.0

    return sorted(keys, key=haste)


def _check_workers(config: JudgeConfig) -> None:
    if not 0 <= config.workers <= MOST_WORKERS:
        raise UsageError(
            f"--workers must be 0 (one per core) to {MOST_WORKERS}, got {config.workers}"
        )


def select_problems(config: JudgeConfig, observer: Observer) -> Selected:
    """Load the benchmark and return the problems that are asked for."""
    whole = _loaded(config, observer)
    benchmark, label = config.problems.apply(whole)
    return Selected(benchmark, label, len(whole.problems))


def _loaded(config: JudgeConfig, observer: Observer) -> Benchmark:
    """The benchmark; an error if its programs could not be judged, before anything is generated."""
    name = benchmarks.of_split(config.benchmark, config.split)
    benchmark = benchmarks.load(name, observer.note, config.data_dir)
    if benchmark.environment:
        environments.find(benchmark.environment)
    return benchmark


def _prices(config: JudgeConfig) -> tuple[float, float]:
    engine = config.engine if isinstance(config, EvalConfig) else EngineOptions()
    return engine.price_in, engine.price_out


def _groups(benchmark: Benchmark) -> list[str]:
    """Of the cases, all problems' being alike; none where tests are code."""
    return next((list(p.tests.cases.inputs) for p in benchmark.problems if p.tests.cases), [])


def _protocol(
    config: JudgeConfig,
    benchmark: Benchmark,
    task_ids: list[str],
    samples: Samples,
    n_samples: int,
    judge: sandbox.Sandbox,
) -> Protocol:
    capabilities = judge.capabilities()
    # Patch releases do not change what a program means.
    python, packages = capabilities.python.rpartition(".")[0], ""
    if benchmark.environment:
        environment = environments.find(benchmark.environment, capabilities.tier)
        python, packages = f"cpython {environment.python}", environment.identity
    return Protocol(
        version=VERSION,
        benchmark=benchmark.name,
        benchmark_version=benchmark.version,
        data_sha256=benchmark.data_sha256,
        problems=len(task_ids),
        problems_sha256=codec.digest(task_ids),
        n_samples=n_samples,
        prompt_strategy=samples.strategy.name,
        prompt_strategy_version=samples.strategy.version,
        asking=samples.asking,
        decoding=samples.decoding,
        extraction_version=extract.VERSION,
        tests="+".join(_groups(benchmark)) or "base",
        limits=benchmark.limits,
        sandbox=capabilities.kind,
        python=python,
        environment=packages,
        origin=samples.origin,
        prompt_imports=config.prompt_imports,
    )


def environment(model: models.Model) -> dict[str, Any]:
    """Where completions are made."""
    return {
        "assay": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": usable_cores(),
        "engine": model.describe(),
    }
