"""Judge the samples of a run and write its result."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from assay import __version__, benchmarks, extract, models, runs, sandbox, scoring
from assay.data import codec
from assay.datasets import cache_dir
from assay.errors import UsageError
from assay.extract.workers import Extractor
from assay.formats.marks import middle_of
from assay.judging import references
from assay.judging.measures import with_measures
from assay.judging.similarity import edit_similarity, is_exact_match
from assay.models import EngineOptions
from assay.pipeline.best_of_n import best_of_n
from assay.pipeline.config import EvalConfig, JudgeConfig, ScoreConfig
from assay.pipeline.run import Stream
from assay.pipeline.samples import (
    Samples,
    SelectedProblems,
)
from assay.progress import Reporter
from assay.protocol import VERSION, Protocol
from assay.runs import Environment, ParityGateOutcome, Result
from assay.runs.folder import make_key
from assay.sandbox.environments import store as environments
from assay.sandbox.environments.interpreters import DEFAULT, for_extraction, minor_of
from assay.types import Benchmark, Limits, SampleKey, Tests, Verdict
from assay.work.machine import usable_cores

LONG_S = 2.0


MOST_WORKERS = 1024
LONGEST_TIME_LIMIT_S = 3600
WALL_PER_CPU = 1.25  # as in the limits of BigCodeBench
UNKNOWN_LIMITS = Limits(0, 0, 0, 0, 0, 0, 0)  # another harness has its own
TEXT_GROUP = "cases"  # of cases that are pairs of texts


def judge_samples(
    config: JudgeConfig,
    selected: SelectedProblems,
    benchmark: Benchmark,  # the selected problems that have samples
    samples: Samples,
    model: models.Model,
    reporter: Reporter,
    gate: ParityGateOutcome
    | None = None,  # outcome of the parity gate on the device that generates
) -> Result:
    """Judge the samples, write the results file, and return the result."""
    begun = time.monotonic() if samples.begun is None else samples.begun
    judge = open_sandbox(config, benchmark, reporter)
    extractor = Extractor(
        config.workers, interpreter=for_extraction(judge.capabilities(), benchmark.environment)
    )
    late = contextlib.ExitStack()
    try:
        checked = references.check(
            benchmark, judge, reporter, again=config.check_references,
            open_late=lambda: config.site.open_sandbox(
                config.sandbox, 1, config.sandbox_tier, config.python
            ),
        )  # fmt: skip
        late.callback(checked.close)
        benchmark = checked.benchmark
        capabilities = judge.capabilities()
        most = max(Counter(task_id for task_id, _ in samples.keys).values(), default=0)
        task_ids = [p.task_id for p in selected.benchmark.problems]
        planned = max(most, samples.planned)
        protocol = _protocol(config, benchmark, task_ids, samples, planned, judge)
        cache = _verdict_cache(capabilities, protocol.environment)
        rounds = config.rounds if isinstance(config, EvalConfig) else 0
        if isinstance(config, EvalConfig):
            config.admit(protocol, make_key(protocol, model.identity, _given_name(config)))
        run = runs.open_run(
            config.results_dir, protocol, model.identity,
            fresh=config.fresh, tests_seed=config.tests_seed, selection=selected.label,
            name=_given_name(config), warn=reporter.note,
        )  # fmt: skip
        try:
            runs.check_resumed(run)
            report_python(config, benchmark, capabilities, reporter)
            _check_device(config, run)
            if benchmarks.is_file(config.benchmark):
                run.relocate_benchmark(str(Path(config.benchmark).absolute()))
            cpu_s = run.keep_time_limits(benchmark.cpu_s)
            benchmark = dataclasses.replace(benchmark, cpu_s=cpu_s)
            stream = Stream(
                benchmark, samples.strategy, protocol, model, judge, run,
                None if config.no_cache else cache, config.workers, checked, reporter,
                samples.store, samples.when_generated, begun,
            )  # fmt: skip
            keys = _long_first(samples.keys, checked.seconds, benchmark.timed)
            stream.flow(keys, lambda: environment(model, capabilities, gate))
            checked.wait()
            wanted = set(task_ids)
            verdicts = [
                v
                for v in run.verdicts.values()
                if v.task_id in wanted and (not rounds or v.sample < rounds)
            ]
            clusters = {p.task_id: p.cluster for p in selected.benchmark.problems if p.cluster}
            tallies = scoring.tally(task_ids, verdicts, clusters)
            labels = {p.task_id: p.labels for p in selected.benchmark.problems if p.labels}
            best = None
            if (method := config.select or runs.kept_selection(run)) and most > 1:
                form = benchmark.form_for(model.identity.prompt_form)
                try:
                    best = best_of_n(method, most, benchmark, form, run, judge, extractor, reporter)
                except UsageError as error:
                    if config.select:
                        raise
                    reporter.note(f"best of {most} by {method} is not computed: {error}")
            elif config.select:
                reporter.note("--select: has no effect with one sample per problem")
            result = runs.build_result(
                run, protocol, tallies,
                scoring.coverage(tallies, most, selected.total, checked.unscorable),
                scoring.estimates(tallies),
                scoring.group_scores(task_ids, verdicts, case_groups(benchmark), clusters),
                checked.unscorable,
                _prices(config),
                best,
                scoring.break_down(tallies, labels),
                rounds,
                _match_score(selected.benchmark, run, verdicts, clusters),
            )  # fmt: skip
            result = runs.with_earlier_checks(result, run)
            result = with_measures(result, benchmark, run, judge, reporter)
            runs.write_result(result)
            return result
        finally:
            run.close()
    finally:
        late.close()
        extractor.close()
        judge.close()


def _match_score(
    benchmark: Benchmark,
    run: runs.RunWriter,
    verdicts: Sequence[Verdict],
    clusters: Mapping[str, str],
) -> scoring.MatchScore | None:
    """Compare the generated middles with the missing code; None if the problems have no gaps."""
    gaps = {p.task_id: p for p in benchmark.problems if p.suffix is not None}
    if not gaps:
        return None
    valid = {verdict.key for verdict in verdicts if verdict.status != "invalid"}
    found: dict[SampleKey, tuple[bool, float]] = {}
    for completion in run.read_completions():
        problem = gaps.get(completion.task_id)
        if problem is not None and completion.key in valid:
            around = problem.prompt, problem.suffix or ""
            text, wanted = (middle_of(t, *around) for t in (completion.text, problem.reference))
            found[completion.key] = is_exact_match(text, wanted), edit_similarity(text, wanted)
    by_task: dict[str, list[tuple[bool, float]]] = {task_id: [] for task_id in gaps}
    for (task_id, _), sample in found.items():
        by_task[task_id].append(sample)
    return scoring.match_score(by_task, clusters)


def _given_name(config: JudgeConfig) -> str:
    if isinstance(config, EvalConfig):
        return config.engine.name
    return config.model_name if isinstance(config, ScoreConfig) else ""


def _check_device(config: JudgeConfig, run: runs.RunWriter) -> None:
    """Raise UsageError if a GPU is requested and the run to resume did not use one."""
    wanted = config.engine.device if isinstance(config, EvalConfig) else "auto"
    if wanted == "cuda" and not all(c.used_gpu for c in run.completions.values()):
        raise UsageError(
            f"{run.path}: has completions that were generated without a GPU. Use --fresh to "
            "generate all of them with --device cuda."
        )


def open_sandbox(config: JudgeConfig, benchmark: Benchmark, reporter: Reporter) -> sandbox.Sandbox:
    """Open the sandbox. Report why stronger tiers are not available."""
    judge = config.site.open_sandbox(
        config.sandbox, config.workers, config.sandbox_tier, config.python
    )
    found = judge.capabilities()
    for refused in found.refused:
        reporter.note(f"sandbox tier {found.tier}: a stronger one is not available ({refused})")
    if benchmark.environment:
        chosen = minor_of(found.python) if config.python else ""
        environments.find(benchmark.environment, found.tier, chosen)
    return judge


def report_python(
    config: JudgeConfig, benchmark: Benchmark, found: sandbox.Capabilities, reporter: Reporter
) -> None:
    """Report the Python that judges, once it is certain that it will."""
    version, place = found.python.rpartition(" ")[2], found.interpreter
    if benchmark.environment:
        environment = environments.find(benchmark.environment)
        version, place = environment.python, environment.interpreter
    reporter.note(f"programs are judged by Python {version}{place and f', {place}'}")
    if place and not config.python and minor_of(version) != DEFAULT:
        reporter.note(
            f"Python {DEFAULT}, by which most results are judged, was not found. Install it with "
            f"'assay env python {DEFAULT}'."
        )


def _verdict_cache(found: sandbox.Capabilities, environment: str) -> runs.VerdictCache:
    image = [found.image] if found.image else []  # two of them may have the same Python
    return runs.VerdictCache(
        cache_dir() / "verdicts", found.kind, found.tier, found.python, environment, *image
    )


def _long_first(
    keys: list[SampleKey], seconds: dict[str, float], timed: frozenset[str] = frozenset()
) -> list[SampleKey]:
    """Return the samples that take long to judge first, and the others in their order.

    Those that are judged alone come last: they wait for all others, which wait for them.
    """

    def haste(key: SampleKey) -> float:
        if key[0] in timed:
            return 1.0
        needed = seconds.get(key[0], 0.0)
        return -needed if needed > LONG_S else 0.0

    return sorted(keys, key=haste)


def check_workers(config: JudgeConfig) -> None:
    if not 0 <= config.workers <= MOST_WORKERS:
        raise UsageError(f"--workers {config.workers}: must be 0 (one per core) to {MOST_WORKERS}.")


def select_problems(config: JudgeConfig, reporter: Reporter) -> SelectedProblems:
    """Load the benchmark and return the selected problems."""
    whole = load_benchmark(config, reporter)
    benchmark, label = config.problems.apply(whole)
    return SelectedProblems(benchmark, label, len(whole.problems))


def load_benchmark(config: JudgeConfig, reporter: Reporter) -> Benchmark:
    """Load the benchmark. Raise an error if its programs cannot be judged here."""
    name = benchmarks.of_split(config.benchmark, config.split)
    benchmark = benchmarks.load(name, reporter.note, config.data_dir)
    if config.time_limit is not None:
        benchmark = with_fixed_limit(benchmark, config.time_limit)
    if config.all_cases:
        benchmark = with_all_cases(benchmark)
    if benchmark.environment:
        environments.find(benchmark.environment)
    return benchmark


def with_all_cases(benchmark: Benchmark) -> Benchmark:
    """Return the benchmark with tests that go on after a failed case on standard input."""
    problems = []
    for problem in benchmark.problems:
        if problem.tests.is_script and (texts := problem.tests.texts):
            texts = dataclasses.replace(texts, run_all=True)
            tests = dataclasses.replace(problem.tests, texts=texts)
            problem = dataclasses.replace(problem, tests=tests)
        problems.append(problem)
    return dataclasses.replace(benchmark, problems=tuple(problems))


def with_fixed_limit(benchmark: Benchmark, cpu_s: float) -> Benchmark:
    """Return the benchmark with one CPU limit for all problems."""
    if not 0 < cpu_s <= LONGEST_TIME_LIMIT_S:
        raise UsageError(
            f"--time-limit {cpu_s:g}: must be above 0 and at most {LONGEST_TIME_LIMIT_S} seconds."
        )
    # A program that computes all the time must reach its CPU limit first.
    wall_s = max(benchmark.limits.wall_s, WALL_PER_CPU * cpu_s)
    limits = dataclasses.replace(benchmark.limits, cpu_s=float(cpu_s), wall_s=wall_s)
    return dataclasses.replace(benchmark, limits=limits, time_rule=None)


def _prices(config: JudgeConfig) -> tuple[float, float]:
    engine = config.engine if isinstance(config, EvalConfig) else EngineOptions()
    return engine.price_in, engine.price_out


def case_groups(benchmark: Benchmark) -> list[str]:
    """Return the names of the case groups that all problems share; none for test code."""
    found = {_groups(problem.tests) for problem in benchmark.problems}
    return list(found.pop()) if len(found) == 1 else []


def _groups(tests: Tests) -> tuple[str, ...]:
    if tests.texts:
        return (TEXT_GROUP,)
    return tuple(tests.cases.inputs) if tests.cases else ()


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
    return dataclasses.replace(
        unjudged_protocol(config, benchmark, task_ids, samples, n_samples),
        limits=benchmark.limits,
        sandbox=capabilities.kind,
        python=python,
        environment=packages,
        time_rule=benchmark.time_rule,
    )


def unjudged_protocol(
    config: JudgeConfig,
    benchmark: Benchmark,
    task_ids: list[str],
    samples: Samples,
    n_samples: int,
) -> Protocol:
    """Return the protocol of samples without what executes them: limits, sandbox and Python."""
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
        tests="+".join(case_groups(benchmark)) or "base",
        limits=UNKNOWN_LIMITS,
        sandbox="",
        python="",
        origin=samples.origin,
        prompt_imports=config.prompt_imports,
    )


def environment(
    model: models.Model,
    capabilities: sandbox.Capabilities | None = None,
    gate: ParityGateOutcome | None = None,
) -> Environment:
    """Return where completions are generated and judged."""
    return Environment(
        assay=__version__,
        python=platform.python_version(),
        platform=platform.platform(),
        machine=platform.machine(),
        cpus=usable_cores(),
        engine=model.describe().to_json(),
        sandbox=capabilities,
        parity_gate=gate,
    )
