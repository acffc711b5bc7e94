"""Open models, benchmarks and runs, and check benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay import benchmarks, models, runs
from assay.data.arguments import checked
from assay.models import EngineOptions, Model
from assay.pipeline import JudgeConfig, ProblemSelection
from assay.pipeline.benchmark_check import BenchmarkCheck
from assay.pipeline.benchmark_check import check_benchmark as run_check
from assay.progress import Reporter, Silent
from assay.runs import Result
from assay.types import Benchmark

SILENT = Silent()

__all__ = ["check_benchmark", "load_benchmark", "load_run", "open_model", "run_check"]


@checked
def open_model(
    reference: str = models.DEFAULT,
    engine: EngineOptions | None = None,
    reporter: Reporter = SILENT,
) -> Model:
    """Open a model file, ``engine:reference`` or ``default``. It is loaded when first used."""
    return models.open_model(reference, engine or EngineOptions(), reporter.note)


@checked
def load_benchmark(
    name: str | Path, *, data_dir: str | Path | None = None, reporter: Reporter = SILENT
) -> Benchmark:
    """Return a benchmark with its problems. Missing data is downloaded and verified.

    ``name`` is a name, or the path of a file of your own in YAML or JSONL.
    """
    return benchmarks.load(str(name), reporter.note, Path(data_dir) if data_dir else None)


@checked
def load_run(reference: str | Path, results_dir: str | Path = "results") -> Result:
    """Read a result by its file, its run's folder, or its name in ``results_dir``."""
    return runs.find_result(str(reference), Path(results_dir))


@checked
def check_benchmark(
    benchmark: str | Path,
    *,
    repeat: int = 3,
    problems: str = "",
    tasks: Sequence[str] = (),
    sandbox: str = "process",
    sandbox_tier: str = "auto",
    python: str = "",
    workers: int = 0,
    data_dir: str | Path | None = None,
    reporter: Reporter = SILENT,
) -> BenchmarkCheck:
    """Check a benchmark, by name or by the path of your own file, and return what is wrong.

    References are judged ``repeat`` times, and programs that solve nothing once. Prompts are
    searched for duplicates and for answers.
    """
    config = JudgeConfig(
        str(benchmark),
        Path(),
        sandbox=sandbox,
        sandbox_tier=sandbox_tier,
        python=python,
        workers=workers,
        data_dir=Path(data_dir) if data_dir else None,
        problems=ProblemSelection(problems, tuple(tasks)),
    )
    return run_check(config, repeat, reporter)
