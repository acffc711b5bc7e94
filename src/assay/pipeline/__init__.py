"""From a model to a score: evaluations, and scores of completions made elsewhere."""

from __future__ import annotations

import dataclasses
import platform
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
from assay.pipeline.best_of_n import best_of_n
from assay.pipeline.decoding import MAX_TOKENS, MAX_TOKENS_THINKING, in_force
from assay.pipeline.stream import Observer, Stream, sample_seed
from assay.prompts import Strategy, strategies
from assay.protocol import Protocol
from assay.sandbox import environments
from assay.types import Benchmark, Decoding, Prompt, SampleKey

__all__ = [
    "ALL", "EngineOptions", "EvalConfig", "Evaluation", "JudgeConfig", "Observer", "ScoreConfig",
    "check_references", "environment", "evaluate", "evaluate_all", "flaky", "recorded",
    "references", "resolve_decoding", "sample_seed", "score",
]  # fmt: skip

# Completions made elsewhere were asked for in a way nobody recorded.
RECORDED = Strategy("recorded", 0, lambda problem, _: Prompt(text=problem.prompt))
STANDARD, ALL = "standard", "all"  # prompt strategies
LONG_S = 2.0
MOST_WORKERS = 1024
UNKNOWN_DECODING = Decoding(max_tokens=0, temperature=0.0, top_k=0, top_p=0.0)


@dataclass(frozen=True, slots=True)
class JudgeConfig:
    """How programs are to be judged, whoever wrote them."""

    benchmark: str
    results_dir: Path
    split: str = ""
    sandbox: str = "process"
    sandbox_tier: str = "auto"
    workers: int = 0
    no_cache: bool = False
    check_references: bool = False
    fresh: bool = False
    select: str = ""  # how one of n samples is chosen; none: not at all
    data_dir: Path | None = None
    tests_seed: str = ""  # of inputs that tests draw; none: a new secret for every run


@dataclass(frozen=True, slots=True)
class ScoreConfig(JudgeConfig):
    """A file of completions to be scored."""

    samples_file: str = ""


@dataclass(frozen=True, slots=True)
class EvalConfig(JudgeConfig):
    """A model to be evaluated."""

    model: str = models.DEFAULT
    samples: int = 0
    n_samples: int = 1
    temperature: float = 0.0
    top_k: int | None = None
    max_tokens: int | None = None  # by what the model is, if not given
    seed: int = 0
    prompt_strategy: str = STANDARD
    engine: EngineOptions = field(default_factory=EngineOptions)
    # Asked before anything is generated: what is recorded of the device, or an error.
    gate: Callable[[], dict[str, Any]] = dict


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A finished run: the results file's content and its path."""

    result: dict[str, Any]
    path: Path


def evaluate(config: EvalConfig, observer: Observer) -> Evaluation:
    """Run (or continue) the evaluation and write its results file."""
    resolve_decoding(config)  # wrong options are told before anything is loaded
    strategy = strategies.get(config.prompt_strategy)
    benchmark = _first(_loaded(config, observer), config.samples)
    engine = config.engine
    if config.select and selection.methods.get(config.select).logprobs:
        engine = dataclasses.replace(engine, logprobs=True)
    model = models.open_model(config.model, engine, observer.note)
    decoding = resolve_decoding(config, thinks=model.thinks)
    if model.thinks and config.max_tokens is None:
        observer.note(f"the model's template lets it think: max-tokens {decoding.max_tokens}")
    keys = [(p.task_id, s) for p in benchmark.problems for s in range(config.n_samples)]
    gate = {"parity_gate": config.gate()}
    return _judged(config, benchmark, strategy, decoding, model, keys, observer, gate)


def evaluate_all(config: EvalConfig, observer: Observer) -> list[Evaluation]:
    """With every prompt strategy in turn, the usual one first."""
    evaluations = []
    for name in sorted(strategies.names(), key=lambda name: name != STANDARD):
        observer.note(f"prompt strategy {name}")
        evaluations.append(evaluate(dataclasses.replace(config, prompt_strategy=name), observer))
    return evaluations


def score(config: ScoreConfig, observer: Observer) -> Evaluation:
    """Judge completions made elsewhere: all those in the file, and no others."""
    _check_workers(config)
    if config.select:
        selection.methods.get(config.select)
    benchmark, model, keys = recorded(config, observer)
    return _judged(config, benchmark, RECORDED, UNKNOWN_DECODING, model, keys, observer)


def recorded(
    config: ScoreConfig, observer: Observer
) -> tuple[Benchmark, models.RecordedModel, list[SampleKey]]:
    """Completions made elsewhere, and the part of the benchmark that they are for."""
    benchmark = _loaded(config, observer)
    model = models.open_recorded(config.samples_file)
    keys = model.recorded()
    known = {p.task_id for p in benchmark.problems}
    if unknown := next((task_id for task_id, _ in keys if task_id not in known), None):
        raise UsageError(
            f"{config.samples_file} has a sample of {unknown}, which is no task of "
            f"{benchmark.name}: give the right --benchmark"
        )
    tasks = {task_id for task_id, _ in keys}
    if missing := len(known - tasks):
        observer.note(f"{missing} of {len(known)} problems have no sample and are left out")
    problems = tuple(p for p in benchmark.problems if p.task_id in tasks)
    return dataclasses.replace(benchmark, problems=problems), model, keys


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
    benchmark: Benchmark,
    strategy: Strategy,
    decoding: Decoding,
    model: models.Model,
    keys: list[SampleKey],
    observer: Observer,
    device: Mapping[str, Any] = MappingProxyType({}),  # where completions are made
) -> Evaluation:
    judge = _open_sandbox(config, observer)
    extractor = Extractor(config.workers)
    try:
        checked = references.check(benchmark, judge, observer, again=config.check_references)
        benchmark = checked.benchmark
        capabilities = judge.capabilities()
        most = max(Counter(task_id for task_id, _ in keys).values(), default=0)
        protocol = _protocol(benchmark, strategy, decoding, most, judge)
        cache = _verdict_cache(capabilities, protocol.environment)
        run = runs.open_run(
            config.results_dir, protocol, model.identity,
            fresh=config.fresh, tests_seed=config.tests_seed,
        )  # fmt: skip
        try:
            stream = Stream(
                benchmark, strategy, protocol, model, judge, extractor, run,
                None if config.no_cache else cache, checked.unscorable, observer,
            )  # fmt: skip
            known = {"sandbox": codec.to_json(capabilities), **device}
            stream.flow(_long_first(keys, checked.seconds), lambda: environment(model) | known)
            task_ids = [p.task_id for p in benchmark.problems]
            wanted = set(task_ids)
            verdicts = [v for v in run.verdicts.values() if v.task_id in wanted]
            tallies = scoring.tally(task_ids, verdicts)
            best = None
            if config.select and most > 1:
                form = model.identity.prompt_form
                best = best_of_n(
                    config.select, most, benchmark, form, run, judge, extractor, observer
                )
            elif config.select:
                observer.note("--select has nothing to choose from: there is one sample a problem")
            result = runs.build_result(
                run, protocol, tallies, scoring.estimates(tallies),
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


def resolve_decoding(config: EvalConfig, *, thinks: bool = False) -> Decoding:
    """The settings in force; a model that thinks may take longer to answer."""
    if config.samples < 0:
        raise UsageError(f"--samples must be 0 (all) or more, got {config.samples}")
    _check_workers(config)
    max_tokens = config.max_tokens
    if max_tokens is None:
        max_tokens = MAX_TOKENS_THINKING if thinks else MAX_TOKENS
    return in_force(config.n_samples, max_tokens, config.temperature, config.top_k, config.seed)


def _check_workers(config: JudgeConfig) -> None:
    if not 0 <= config.workers <= MOST_WORKERS:
        raise UsageError(
            f"--workers must be 0 (one per core) to {MOST_WORKERS}, got {config.workers}"
        )


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


def _first(benchmark: Benchmark, count: int) -> Benchmark:
    problems = benchmark.problems[:count] if count else benchmark.problems
    return dataclasses.replace(benchmark, problems=problems)


def _protocol(
    benchmark: Benchmark,
    strategy: Strategy,
    decoding: Decoding,
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
        benchmark=benchmark.name,
        benchmark_version=benchmark.version,
        data_sha256=benchmark.data_sha256,
        problems=len(benchmark.problems),
        problems_sha256=codec.digest([p.task_id for p in benchmark.problems]),
        n_samples=n_samples,
        prompt_strategy=strategy.name,
        prompt_strategy_version=strategy.version,
        decoding=decoding,
        extraction_version=extract.VERSION,
        tests="+".join(_groups(benchmark)) or "base",
        limits=benchmark.limits,
        sandbox=capabilities.kind,
        python=python,
        environment=packages,
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
