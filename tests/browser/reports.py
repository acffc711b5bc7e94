"""Reports for browser tests: real runs of every benchmark, a hostile run, and a large one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from assay import benchmarks
from assay.errors import AssayError
from assay.pipeline import ScoreConfig, score
from assay.pipeline.problems import ProblemSelection
from assay.progress import Silent
from assay.report.pages.build import build_report
from assay.runs import Result
from assay.sandbox.environments import store as environments
from tests.conftest import write_completions
from tests.report.run_folders import hostile_samples, large_samples, write_run

BENCHMARKS = ("mini", "humaneval", "humanevalplus", "mbpp", "mbppplus", "bigcodebench")
PROBLEMS = 5


def score_references(
    folder: Path, name: str, model: str, wrong: Sequence[int], n_samples: int = 1
) -> Result:
    """Judge the references of a benchmark's first problems; some are replaced by wrong programs."""
    benchmark = benchmarks.load(name)
    if benchmark.environment:
        try:
            environments.find(benchmark.environment)
        except AssayError as error:
            pytest.skip(str(error))
    answers = []
    for number, problem in enumerate(benchmark.problems[:PROBLEMS]):
        for sample in range(n_samples):
            fails = number in wrong and (n_samples == 1 or sample > 0)
            wrong_code = f"def {problem.tests.entry_point}(*a, **k):\n    return object()\n"
            answer = wrong_code if fails else problem.reference
            answers.append((problem.task_id, f"Here:\n\n```python\n{answer}\n```\nDone."))
    folder.mkdir(exist_ok=True)
    path = write_completions(folder / f"{model}-{name}.jsonl", answers)
    config = ScoreConfig(
        benchmark=name, results_dir=folder / "results", samples_file=str(path), model_name=model,
        problems=ProblemSelection(str(PROBLEMS)), partial=True,
    )  # fmt: skip
    return score(config, Silent())


def write_report(folder: Path, output: Path) -> Path:
    """Write the report of a results folder."""
    output.write_text(build_report([], results_dir=folder), encoding="utf-8")
    return output


def write_hostile_report(folder: Path) -> Path:
    """Write the report of two runs whose texts try to break out of a page."""
    name = "<img src=x onerror='window.hacked = 1'>\u202eevil"
    write_run(folder / "results", hostile_samples(), model=name)
    write_run(folder / "results", hostile_samples()[:5], model="</title>")
    return write_report(folder / "results", folder / "hostile.html")


def write_large_report(folder: Path) -> Path:
    """Write the report of 11,400 samples."""
    write_run(
        folder / "results", large_samples(10), model="large", name="bigcodebench", n_samples=10
    )
    return write_report(folder / "results", folder / "large.html")
