"""Reports for browser tests: real runs of every benchmark, a hostile run, and a large one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay import benchmarks
from assay.formats.marks import middle_of
from assay.pipeline import ScoreConfig, score
from assay.pipeline.problems import ProblemSelection
from assay.progress import Silent
from assay.report.pages.site import build_report
from assay.runs import Result
from assay.types import Problem
from tests.conftest import write_completions
from tests.report.run_folders import hostile_samples, large_samples, sample, write_run

PROBLEMS = 5


def write_answer(problem: Problem, right: bool) -> str:
    """Return an answer to a problem, of the kind that its benchmark asks for."""
    if problem.suffix is not None:
        middle = middle_of(problem.reference, problem.prompt, problem.suffix)
        return middle if right else "    return object()\n"
    if problem.tests.answer:
        wrong = "0" if problem.tests.answer.kind == "literal" else "f(None, None, None)"
        return f"It is [ANSWER]{problem.reference if right else wrong}[/ANSWER]"
    wrong = f"def {problem.tests.entry_point}(*a, **k):\n    return object()"
    wrong = "print('wrong')" if problem.tests.is_script else wrong
    return f"Here:\n\n```python\n{problem.reference if right else wrong}\n```\nDone."


def score_references(
    folder: Path, name: str, model: str, wrong: Sequence[int], n_samples: int = 1,
    problems: int = PROBLEMS,
) -> Result:  # fmt: skip
    """Judge the references of a benchmark's first problems; some are replaced by wrong programs."""
    answers = []
    for number, problem in enumerate(benchmarks.load(name).problems[:problems]):
        for at in range(n_samples):
            right = number not in wrong or (n_samples > 1 and at == 0)
            answers.append((problem.task_id, write_answer(problem, right)))
    folder.mkdir(exist_ok=True)
    path = write_completions(folder / f"{model}-{Path(name).stem}.jsonl", answers)
    config = ScoreConfig(
        benchmark=name, results_dir=folder / "results", samples_file=str(path), model_name=model,
        problems=ProblemSelection(str(problems)), partial=True,
    )  # fmt: skip
    return score(config, Silent())


def write_report(folder: Path, output: Path) -> Path:
    """Write the report of a results folder."""
    output.write_text(build_report([], results_dir=folder), encoding="utf-8")
    return output


# Tasks with names of properties that all objects of a script have.
PROPERTIES = ("constructor", "__proto__", "toString", "hasOwnProperty")


def write_hostile_report(folder: Path) -> Path:
    """Write the report of two runs whose texts try to break out of a page."""
    name = "<img src=x onerror='window.hacked = 1'>\u202eevil"
    odd = [sample(task, rule=task, status="fail", reason=task) for task in PROPERTIES]
    write_run(folder / "results", [*hostile_samples(), *odd], model=name)
    write_run(folder / "results", hostile_samples()[:5], model="</title>")
    return write_report(folder / "results", folder / "hostile.html")


def write_large_report(folder: Path) -> Path:
    """Write the report of 11,400 samples."""
    write_run(
        folder / "results", large_samples(10), model="large", name="bigcodebench", n_samples=10
    )
    return write_report(folder / "results", folder / "large.html")
