"""Check benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.data.arguments import checked
from assay.pipeline import JudgeConfig, ProblemSelection
from assay.pipeline.benchmark_check import BenchmarkCheck
from assay.pipeline.benchmark_check import check_benchmark as run_check
from assay.progress import Reporter, Silent

__all__ = ["check_benchmark", "run_check"]

SILENT = Silent()


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
