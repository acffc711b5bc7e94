"""Evaluate models, one at a time or as a suite."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from pathlib import Path

from assay import models, pipeline
from assay.data.arguments import checked
from assay.models import EngineOptions, Model
from assay.pipeline import EvalConfig, ProblemSelection, Sampling, Until
from assay.pipeline.site import THIS_MACHINE, CheckModel, Site
from assay.pipeline.suite.estimate import SuitePlan, estimate_suite
from assay.pipeline.suite.file import read_suite_file
from assay.pipeline.suite.plan import ReadyRun, WhenOpen, prepare_suite
from assay.pipeline.suite.run import SuiteResult
from assay.pipeline.suite.run import run_suite as run_prepared
from assay.pipeline.suite.suite import Suite
from assay.progress import Announce, Reporter, Silent
from assay.quality.parity_gate import require_parity
from assay.runs import ParityGateOutcome, Result
from assay.runs.marks import require_publishable
from assay.types import PromptImports

SILENT = Silent()


@checked
def evaluate(
    benchmark: str | Path,
    *,
    model: str = models.DEFAULT,
    n_samples: int = 1,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    max_tokens: int | None = None,
    seed: int = 0,
    prompt_strategy: str = "default",
    system: str = "",
    stop: Sequence[str] = (),
    problems: str = "",
    tasks: Sequence[str] = (),
    first_day: str = "",
    last_day: str = "",
    labels: Sequence[str] = (),
    all_cases: bool = False,
    prompt_imports: PromptImports = "prepended",
    time_limit: float | None = None,
    select: str = "",
    engine: EngineOptions | None = None,
    sandbox: str = "process",
    sandbox_tier: str = "auto",
    python: str = "",
    workers: int = 0,
    use_cache: bool = True,
    results_dir: str | Path = "results",
    data_dir: str | Path | None = None,
    fresh: bool = False,
    parity_gate: bool = True,
    publishable: bool = False,
    until: Until | None = None,
    site: Site = THIS_MACHINE,
    reporter: Reporter = SILENT,
) -> Result:
    """Evaluate a model on a benchmark, or resume the same evaluation, and return its result.

    ``benchmark`` is a name, or the path of a file of your own in YAML or JSONL.
    The arguments are the options of ``assay eval``: ``problems`` is ``"10"`` or ``"20:40"``,
    ``tasks`` are task ids, and ``engine`` holds the options of engines. ``first_day`` and
    ``last_day`` (YYYY-MM-DD) and ``labels`` (``"difficulty=hard"``) select dated problems.
    ``time_limit`` is in CPU seconds; None derives it from the references. ``python`` is the version
    or path of the Python that judges; by default 3.11 if it is installed. The parity gate applies
    as on the command line.
    ``until`` adds samples only until a comparison with a baseline decides. ``site`` is where the
    work is done: this machine, or a cluster (see ``assay.cluster.open_cluster``).
    Raise an ``AssayError`` for errors that a user can cause.
    """
    options = engine or EngineOptions()
    config = EvalConfig(
        benchmark=str(benchmark),
        results_dir=Path(results_dir),
        sandbox=sandbox,
        sandbox_tier=sandbox_tier,
        python=python,
        workers=workers,
        no_cache=not use_cache,
        fresh=fresh,
        select=select,
        data_dir=Path(data_dir) if data_dir else None,
        problems=ProblemSelection(
            problems, tuple(tasks), first_day=first_day, last_day=last_day, labels=tuple(labels)
        ),
        all_cases=all_cases,
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
        site=site,
    )
    (result,) = run_evaluation(config, reporter, publishable=publishable, parity_gate=parity_gate)
    if publishable:
        require_publishable([result])
    return result


@checked
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
    gate = _parity_gate(publishable, parity_gate)
    if config.until is not None:
        return [pipeline.evaluate_until(config, config.until, reporter, gate)]
    if config.prompt_strategy == pipeline.ALL:
        return pipeline.evaluate_all(config, reporter, gate)
    return [pipeline.evaluate(config, reporter, gate=gate)]


@checked
def run_suite(
    suite: Suite | str | Path,
    *,
    problems: str = "",
    sandbox: str = "process",
    sandbox_tier: str = "auto",
    python: str = "",
    workers: int = 0,
    use_cache: bool = True,
    results_dir: str | Path = "results",
    data_dir: str | Path | None = None,
    fresh: bool = False,
    parity_gate: bool = True,
    site: Site = THIS_MACHINE,
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
        python=python,
        workers=workers,
        no_cache=not use_cache,
        fresh=fresh,
        data_dir=Path(data_dir) if data_dir else None,
        problems=ProblemSelection(problems),
        site=site,
    )
    return evaluate_suite(suite, base, reporter, parity_gate=parity_gate)


@checked
def evaluate_suite(
    suite: Suite | str | Path,
    base: EvalConfig,
    reporter: Reporter = SILENT,
    *,
    publishable: bool = False,
    parity_gate: bool = True,
) -> SuiteResult:
    """Run (or resume) a suite. ``base`` has the settings that a suite does not have."""
    with contextlib.ExitStack() as first:
        # An engine takes seconds to start, and so does reading the problems.
        suite, runs = open_suite(
            suite, base, reporter, lambda model: first.enter_context(models.start_early(model))
        )
        return run_prepared(suite, runs, reporter, _parity_gate(publishable, parity_gate))


def _parity_gate(publishable: bool, wanted: bool) -> CheckModel:
    """Return the parity gate as a function that can be called on another machine."""
    return functools.partial(_require_parity, publishable=publishable, wanted=wanted)


def _require_parity(
    spec: str,
    options: EngineOptions,
    model: Model,
    note: Announce,
    *,
    publishable: bool,
    wanted: bool,
) -> ParityGateOutcome:
    return require_parity(spec, options, model, publishable=publishable, wanted=wanted, note=note)


@checked
def plan_suite(
    suite: Suite | str | Path, base: EvalConfig, reporter: Reporter = SILENT
) -> SuitePlan:
    """Return what a suite would do: requests, tokens and time. Nothing is loaded."""
    return estimate_suite(open_suite(suite, base, reporter)[1])


@checked
def open_suite(
    suite: Suite | str | Path,
    base: EvalConfig,
    reporter: Reporter = SILENT,
    when_open: WhenOpen = lambda _: None,
) -> tuple[Suite, list[ReadyRun]]:
    """Return a suite with its evaluations. Raise SuiteError with everything that is wrong.

    ``when_open`` is called with the first model before problems are read.
    """
    problems = None
    if not isinstance(suite, Suite):
        suite, problems = read_suite_file(Path(suite))
    return suite, prepare_suite(suite, base, reporter, problems, when_open)
