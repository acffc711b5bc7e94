"""The functions of ``import assay``. They print nothing unless given a reporter."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from assay import benchmarks, models, pipeline, runs
from assay.errors import UsageError
from assay.models import EngineOptions, Model
from assay.pipeline import EvalConfig, ProblemSelection, Sampling, Until, references
from assay.pipeline.suite.estimate import SuitePlan, estimate_suite
from assay.pipeline.suite.file import read_suite_file
from assay.pipeline.suite.plan import ReadyRun, prepare_suite
from assay.pipeline.suite.run import SuiteResult
from assay.pipeline.suite.run import run_suite as run_prepared
from assay.pipeline.suite.suite import Suite
from assay.progress import Reporter, Silent
from assay.quality.parity_gate import require_parity
from assay.quality.plan import Plan
from assay.quality.plan import plan as plan_evaluation
from assay.report.leaderboard import Baseline, Leaderboard, ModelFacts, find_sizes
from assay.report.leaderboard import leaderboard as build_leaderboard
from assay.report.leaderboard.measures import NEED_FILES
from assay.runs import Comparison, ComparisonFamily, Gate, Result, RunEntry
from assay.runs.publication import require_publishable
from assay.sandbox import open_sandbox
from assay.scoring.decisions import MARGIN
from assay.scoring.power import POWER
from assay.types import Benchmark, Job, Limits, Program, PromptImports, Verdict

Programs = Mapping[str, str] | Iterable[tuple[str, str]]
SILENT = Silent()


def evaluate(
    benchmark: str,
    *,
    model: str = models.DEFAULT,
    n_samples: int = 1,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    max_tokens: int | None = None,
    seed: int = 0,
    prompt_strategy: str = "standard",
    system: str = "",
    stop: Sequence[str] = (),
    problems: str = "",
    tasks: Sequence[str] = (),
    prompt_imports: PromptImports = "prepended",
    time_limit: float | None = None,
    select: str = "",
    engine: EngineOptions | None = None,
    sandbox: str = "process",
    sandbox_tier: str = "auto",
    workers: int = 0,
    use_cache: bool = True,
    results_dir: str | Path = "results",
    data_dir: str | Path | None = None,
    fresh: bool = False,
    parity_gate: bool = True,
    publishable: bool = False,
    until: Until | None = None,
    reporter: Reporter = SILENT,
) -> Result:
    """Evaluate a model on a benchmark, or resume the same evaluation, and return its result.

    The arguments are the options of ``assay eval``: ``problems`` is ``"10"`` or ``"20:40"``,
    ``tasks`` are task ids, and ``engine`` holds the options of engines. ``time_limit`` is in CPU
    seconds; None derives it from the references. The parity gate applies as on the command line.
    ``until`` adds samples only until a comparison with a baseline decides.
    Raise an ``AssayError`` for errors that a user can cause.
    """
    options = engine or EngineOptions()
    config = EvalConfig(
        benchmark=benchmark,
        results_dir=Path(results_dir),
        sandbox=sandbox,
        sandbox_tier=sandbox_tier,
        workers=workers,
        no_cache=not use_cache,
        fresh=fresh,
        select=select,
        data_dir=Path(data_dir) if data_dir else None,
        problems=ProblemSelection(problems, tasks=tuple(tasks)),
        prompt_imports=prompt_imports,
        time_limit=time_limit,
        model=model,
        sampling=Sampling(
            n_samples, temperature, top_k, top_p, min_p, repetition_penalty, max_tokens, seed
        ),
        prompt_strategy=prompt_strategy,
        system=system,
        stop=tuple(stop),
        engine=options,
        until=until,
    )
    (result,) = run_evaluation(config, reporter, publishable=publishable, parity_gate=parity_gate)
    if publishable:
        require_publishable([result])
    return result


def run_evaluation(
    config: EvalConfig,
    reporter: Reporter = SILENT,
    *,
    publishable: bool = False,
    parity_gate: bool = True,
) -> list[Result]:
    """Run (or resume) an evaluation after the parity gate.

    Return one result, or one for each strategy with the prompt strategy ``all``.
    """
    gate = functools.partial(
        require_parity, config.model, config.engine, publishable=publishable, wanted=parity_gate,
        note=reporter.note,
    )  # fmt: skip
    config = replace(config, gate=gate)
    if config.until is not None:
        return [pipeline.evaluate_until(config, config.until, reporter)]
    if config.prompt_strategy == pipeline.ALL:
        return pipeline.evaluate_all(config, reporter)
    return [pipeline.evaluate(config, reporter)]


def run_suite(
    suite: Suite | str | Path,
    *,
    problems: str = "",
    sandbox: str = "process",
    sandbox_tier: str = "auto",
    workers: int = 0,
    use_cache: bool = True,
    results_dir: str | Path = "results",
    data_dir: str | Path | None = None,
    fresh: bool = False,
    parity_gate: bool = True,
    reporter: Reporter = SILENT,
) -> SuiteResult:
    """Evaluate the models of a suite, given its YAML file or a Suite, or resume the same suite.

    Each model is loaded once. An evaluation that fails costs its own row. Raise SuiteError with
    all problems of the file before anything is loaded.
    """
    base = EvalConfig(
        benchmark="",
        results_dir=Path(results_dir),
        sandbox=sandbox,
        sandbox_tier=sandbox_tier,
        workers=workers,
        no_cache=not use_cache,
        fresh=fresh,
        data_dir=Path(data_dir) if data_dir else None,
        problems=ProblemSelection(problems),
    )
    return evaluate_suite(suite, base, reporter, parity_gate=parity_gate)


def evaluate_suite(
    suite: Suite | str | Path,
    base: EvalConfig,
    reporter: Reporter = SILENT,
    *,
    publishable: bool = False,
    parity_gate: bool = True,
) -> SuiteResult:
    """Run (or resume) a suite. ``base`` has the settings that a suite does not have."""
    suite, runs = open_suite(suite, base, reporter)

    def check_device(config: EvalConfig, model: Model) -> Gate:
        return require_parity(
            config.model, config.engine, model, publishable=publishable, wanted=parity_gate,
            note=reporter.note,
        )  # fmt: skip

    return run_prepared(suite, runs, reporter, check_device)


def plan_suite(
    suite: Suite | str | Path, base: EvalConfig, reporter: Reporter = SILENT
) -> SuitePlan:
    """Return what a suite would do: requests, tokens and time. Nothing is loaded."""
    return estimate_suite(open_suite(suite, base, reporter)[1])


def open_suite(
    suite: Suite | str | Path, base: EvalConfig, reporter: Reporter = SILENT
) -> tuple[Suite, list[ReadyRun]]:
    """Return a suite with its evaluations. Raise SuiteError with everything that is wrong."""
    problems = None
    if not isinstance(suite, Suite):
        suite, problems = read_suite_file(Path(suite))
    return suite, prepare_suite(suite, base, reporter, problems)


def judge(
    programs: Programs,
    benchmark: str | Benchmark,
    *,
    workers: int = 0,
    sandbox: str = "process",
    sandbox_tier: str = "auto",
    limits: Limits | None = None,
    data_dir: str | Path | None = None,
    reporter: Reporter = SILENT,
) -> list[Verdict]:
    """Judge programs and return their verdicts, in the order of the programs.

    ``programs`` are pairs of a task id and a whole program, or a mapping. A verdict's ``sample`` is
    the program's position. Use a ``Judge`` for more than one call: it keeps its sandbox warm.
    """
    with Judge(
        benchmark, workers=workers, sandbox=sandbox, sandbox_tier=sandbox_tier, limits=limits,
        data_dir=data_dir, reporter=reporter,
    ) as opened:  # fmt: skip
        return opened.judge(programs)


class Judge:
    """A sandbox for the programs of one benchmark that stays ready between calls.

    Reference solutions are checked on first use, once per machine. Use it as a context manager, or
    close it.
    """

    def __init__(
        self,
        benchmark: str | Benchmark,
        *,
        workers: int = 0,
        sandbox: str = "process",
        sandbox_tier: str = "auto",
        limits: Limits | None = None,
        data_dir: str | Path | None = None,
        reporter: Reporter = SILENT,
    ) -> None:
        found = benchmark
        if isinstance(found, str):
            found = load_benchmark(found, data_dir=data_dir, reporter=reporter)
        if limits:
            found = replace(found, limits=limits, time_rule=None)
        self._sandbox = open_sandbox(sandbox, workers, sandbox_tier)
        try:
            checked = references.check(found, self._sandbox, reporter)
        except BaseException:
            self._sandbox.close()
            raise
        self.benchmark = checked.benchmark
        self.unscorable = checked.unscorable  # tasks whose reference fails here, and why
        self._problems = {problem.task_id: problem for problem in self.benchmark.problems}

    def judge(self, programs: Programs) -> list[Verdict]:
        """Return a verdict for every program, in the order of the programs."""
        jobs = self._jobs(programs)
        verdicts = {verdict.sample: verdict for verdict in self._sandbox.judge(jobs)}
        return [verdicts[number] for number in range(len(jobs))]

    def stream(self, programs: Programs) -> Iterator[Verdict]:
        """Yield verdicts as they come. ``sample`` is the program's position."""
        return self._sandbox.judge(self._jobs(programs))

    def close(self) -> None:
        """Stop the sandbox and everything that runs in it."""
        self._sandbox.close()

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _jobs(self, programs: Programs) -> list[Job]:
        pairs = programs.items() if isinstance(programs, Mapping) else programs
        return [self._job(number, *pair) for number, pair in enumerate(pairs)]

    def _job(self, number: int, task_id: str, code: str) -> Job:
        if task_id not in self._problems:
            raise UsageError(
                f"{task_id}: is not a task of {self.benchmark.name}. Give one of its task ids."
            )
        return Job(
            task_id=task_id,
            sample=number,
            program=Program(code, "given"),
            tests=self._problems[task_id].tests,
            limits=self.benchmark.limits_of(task_id),
            imports=self.benchmark.imports,
            environment=self.benchmark.environment,
        )


def compare(
    a: Result | str | Path,
    b: Result | str | Path,
    *,
    margin: float = MARGIN,
    force: bool = False,
    unpaired: bool = False,
) -> Comparison:
    """Compare result ``b`` with result ``a``: better, worse, equivalent or undecided.

    ``margin`` is the largest difference that counts as equivalent, as a share: 0.02 is two points.
    Raise UsageError if the protocols differ; ``force`` compares them anyway, and the comparison
    lists the differences. ``unpaired`` compares runs of different problems.
    """
    first, second = (x if isinstance(x, Result) else load_run(x) for x in (a, b))
    found = runs.compare(first, second, margin=margin, unpaired=unpaired)
    _check_protocols(found, force=force)
    return found


def compare_family(
    baseline: Result | str | Path,
    others: Sequence[Result | str | Path],
    *,
    margin: float = MARGIN,
    force: bool = False,
) -> ComparisonFamily:
    """Compare several results with a baseline, with one chance of error for all comparisons."""
    first, *rest = (x if isinstance(x, Result) else load_run(x) for x in (baseline, *others))
    if not rest:
        raise UsageError("compare_family: has no result to compare with the baseline. Give one.")
    found = runs.compare_family(first, rest, margin=margin)
    for member in found.members:
        _check_protocols(member.comparison, force=force)
    return found


def _check_protocols(found: Comparison, *, force: bool) -> None:
    if found.protocol_differences and not force:
        names = ", ".join(name for name, _, _ in found.protocol_differences)
        raise UsageError(
            f"{found.run_b}: its protocol differs from that of {found.run_a} ({names}). "
            "Compare runs of one protocol, or pass force=True."
        )


def plan(
    benchmark: str,
    *,
    difference: float = 0.03,
    power: float = POWER,
    pilots: Sequence[Result | str | Path] = (),
    data_dir: str | Path | None = None,
    reporter: Reporter = SILENT,
) -> Plan:
    """Return how many problems and samples show a difference, and what they cost.

    ``difference`` is a share: 0.03 is three points. Up to two ``pilots`` replace assumptions.
    """
    found = [x if isinstance(x, Result) else load_run(x) for x in pilots]
    problems = len(load_benchmark(benchmark, data_dir=data_dir, reporter=reporter).problems)
    return plan_evaluation(benchmark, problems, difference, power, found)


def leaderboard(
    results: str | Path | Iterable[Result | RunEntry | str | Path] = "results",
    *,
    sort: str = "rank",
    columns: Sequence[str] = (),
    pareto: str = "",
    dollars_per_hour: float = 0.0,
    baselines: Iterable[Baseline] = (),
    facts: Mapping[str, ModelFacts] | None = None,
    reporter: Reporter = SILENT,
) -> Leaderboard:
    """Put results side by side: one row per model, one column per benchmark.

    ``results`` is a results folder, or a list of results, entries of the history, results files,
    folders of runs and results folders. The other arguments are the options of ``assay
    leaderboard``. ``facts`` are sizes and speeds by name of the model, or by digest of its weights;
    sizes are also read from the model's file if it is still there. Runs of different protocols are
    in different blocks.
    """
    given = [results] if isinstance(results, str | Path) else list(results)
    names = [str(one) for one in given if isinstance(one, str | Path)]
    entries = [one for one in given if isinstance(one, RunEntry)]
    entries += runs.collect_runs(names, Path("results"), reporter.note) if names else []
    finished = [one for one in given if isinstance(one, Result)]
    finished += [entry.result for entry in entries if entry.result]
    known = dict(facts or {})
    if NEED_FILES & {*columns, sort, pareto}:
        identities = [one.model_identity for one in finished if one.model_identity]
        for weights, sizes in find_sizes(identities).items():
            known[weights] = known.get(weights, sizes).fill(sizes)
    return build_leaderboard(
        finished,
        unfinished=[entry for entry in entries if entry.result is None],
        baselines=baselines,
        facts=known,
        sort=sort,
        columns=columns,
        pareto=pareto,
        dollars_per_hour=dollars_per_hour,
    )


def open_model(
    reference: str = models.DEFAULT,
    engine: EngineOptions | None = None,
    reporter: Reporter = SILENT,
) -> Model:
    """Open a model file, ``engine:reference`` or ``default``. It is loaded when first used."""
    return models.open_model(reference, engine or EngineOptions(), reporter.note)


def load_benchmark(
    name: str, *, data_dir: str | Path | None = None, reporter: Reporter = SILENT
) -> Benchmark:
    """Return a benchmark with its problems. Missing data is downloaded and verified."""
    return benchmarks.load(name, reporter.note, Path(data_dir) if data_dir else None)


def load_run(reference: str | Path, results_dir: str | Path = "results") -> Result:
    """Read a result by its file, its run's folder, or its name in ``results_dir``."""
    return runs.find_result(str(reference), Path(results_dir))
