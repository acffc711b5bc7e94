"""Load a benchmark, select its problems, and set what its programs are judged with."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from assay import benchmarks
from assay.data.reading import FileReader
from assay.errors import UsageError
from assay.sandbox.environments import store as environments

if TYPE_CHECKING:
    from assay.pipeline.config import JudgeConfig
    from assay.progress import Reporter
    from assay.types import Benchmark, Problem, PromptForm, PromptImports, Tests

RANGE = re.compile(r"(\d{1,9})|(\d{0,9}):(\d{0,9})", re.ASCII)
TASK_FILES = FileReader(UsageError, "Give a file with one task id per line", 1 << 24)
NAMED = 3  # task ids that a label lists; more are counted
LONGEST_TIME_LIMIT_S = 3600
WALL_PER_CPU = 1.25  # as in the limits of BigCodeBench
HINTS = "hints"  # the extraction rule that adds imports of typing


@dataclass(frozen=True, slots=True)
class ProblemSelection:
    """The choice of problems. Without any setting, all are selected.

    ``range`` is ``N`` (the first N), ``A:B``, ``A:`` or ``:B``, as Python slices count. It counts
    the problems that were published between two days and have the labels.
    """

    range: str = ""
    tasks: tuple[str, ...] = ()
    file: Path | None = None
    first_day: str = ""  # YYYY-MM-DD
    last_day: str = ""
    labels: tuple[str, ...] = ()  # name=value

    def __post_init__(self) -> None:
        if self.range:
            self.slice()
        check_day("--from", self.first_day)
        check_day("--to", self.last_day)
        if self.first_day and self.last_day and self.first_day > self.last_day:
            raise UsageError(
                f"--from {self.first_day}: is after --to {self.last_day}. Swap the two."
            )
        if label := next((label for label in self.labels if "=" not in label), None):
            raise UsageError(
                f"--label {label}: has no value. Give a label such as platform=leetcode."
            )
        if self.range and self.range != "0" and (self.tasks or self.file):
            raise UsageError(
                "--problems: cannot be combined with --task or --from-file. Give one of them."
            )

    def slice(self) -> slice:
        """Return the range as a slice. Raise UsageError if it is not valid."""
        match = RANGE.fullmatch(self.range)
        if match is None:
            raise UsageError(
                f"--problems {self.range}: is not a number or a range such as 10:20. "
                "Give 0 for all problems."
            )
        count, first, last = match.groups()
        if count:
            return slice(0, int(count) or None)
        return slice(int(first or 0), int(last) if last else None)

    def apply(self, benchmark: Benchmark) -> tuple[Benchmark, str]:
        """Return the selected part of a benchmark and its label, such as ``[:10]``.

        The label is empty if all problems are selected.
        """
        count = len(benchmark.problems)
        benchmark, window = self._by_facts(benchmark)
        if self.tasks or self.file:
            chosen, label = self._by_id(benchmark)
        else:
            chosen, label = self._by_range(benchmark)
        if len(chosen) == count:
            return benchmark, ""
        if len(chosen) == len(benchmark.problems):
            label = ""
        return replace(benchmark, problems=chosen), window + label

    def _by_facts(self, benchmark: Benchmark) -> tuple[Benchmark, str]:
        """Return the problems of the window with the labels, and the window's own label."""
        name, problems = benchmark.name, benchmark.problems
        window = ""
        if self.first_day or self.last_day:
            window = f"[{self.first_day}..{self.last_day}]"
            if not any(problem.date for problem in problems):
                raise UsageError(f"{name}: its problems have no dates. Drop --from and --to.")
            last = self.last_day or "9999"
            problems = tuple(p for p in problems if p.date and self.first_day <= p.date <= last)
        for wanted in self.labels:
            key, _, value = wanted.partition("=")
            known = sorted({p.labels[key] for p in benchmark.problems if key in p.labels})
            if value not in known:
                keys = sorted({one for p in benchmark.problems for one in p.labels})
                choices = ", ".join(f"{key}={one}" for one in known) or ", ".join(keys) or "none"
                raise UsageError(f"--label {wanted}: is not a label of {name}. It has {choices}.")
            problems = tuple(p for p in problems if p.labels.get(key) == value)
            window += f"[{wanted}]"
        if not problems:
            raise UsageError(f"{window}: selects no problem of {name}. Give a wider selection.")
        return replace(benchmark, problems=problems), window

    def _by_range(self, benchmark: Benchmark) -> tuple[tuple[Problem, ...], str]:
        wanted = self.slice() if self.range else slice(0, None)
        chosen = benchmark.problems[wanted]
        if not chosen:
            raise UsageError(
                f"--problems {self.range}: selects no problem of {benchmark.name}, which has "
                f"{len(benchmark.problems)}. Give another range."
            )
        last = "" if wanted.stop is None else str(wanted.stop)
        return chosen, f"[{wanted.start or ''}:{last}]"

    def _by_id(self, benchmark: Benchmark) -> tuple[tuple[Problem, ...], str]:
        wanted = dict.fromkeys((*self.tasks, *_ids_of(self.file)))
        known = {problem.task_id for problem in benchmark.problems}
        if unknown := next((task for task in wanted if task not in known), None):
            example = benchmark.problems[0].task_id
            raise UsageError(
                f"{unknown}: is not a task of {benchmark.name}. Give ids such as {example}."
            )
        chosen = tuple(p for p in benchmark.problems if p.task_id in wanted)
        ids = [problem.task_id for problem in chosen]
        return chosen, f"[{','.join(ids)}]" if len(ids) <= NAMED else f"[{len(ids)} tasks]"


def check_day(flag: str, day: str) -> None:
    """Raise UsageError unless this is a day, or empty."""
    try:
        valid = not day or date.fromisoformat(day).isoformat() == day
    except ValueError:
        valid = False
    if not valid:
        raise UsageError(f"{flag} {day}: is not a day. Give one such as 2024-08-01.")


def _ids_of(file: Path | None) -> list[str]:
    if file is None:
        return []
    content = TASK_FILES.read_text(file).removeprefix("\ufeff")
    lines = [line.strip() for line in content.splitlines()]
    ids = [line for line in lines if line and not line.startswith("#")]
    if not ids:
        raise UsageError(f"{file}: has no task ids. Give a file with one task id per line.")
    return ids


@dataclass(frozen=True, slots=True)
class SelectedProblems:
    """Problems of a benchmark, their label (such as ``[:10]``), and how many the benchmark has."""

    benchmark: Benchmark
    label: str
    total: int


def select_problems(config: JudgeConfig, reporter: Reporter) -> SelectedProblems:
    """Load the benchmark and return the selected problems."""
    return apply_selection(config, load_benchmark(config, reporter))


def apply_selection(config: JudgeConfig, whole: Benchmark) -> SelectedProblems:
    """Return the selected problems of a benchmark that is loaded."""
    return SelectedProblems(*config.problems.apply(whole), len(whole.problems))


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
            tests = replace(problem.tests, texts=replace(texts, run_all=True))
            problem = replace(problem, tests=tests)
        problems.append(problem)
    return replace(benchmark, problems=tuple(problems))


def with_fixed_limit(benchmark: Benchmark, cpu_s: float) -> Benchmark:
    """Return the benchmark with one CPU limit for all problems."""
    if not 0 < cpu_s <= LONGEST_TIME_LIMIT_S:
        raise UsageError(
            f"--time-limit {cpu_s:g}: must be above 0 and at most {LONGEST_TIME_LIMIT_S} seconds."
        )
    # A program that computes all the time must reach its CPU limit first.
    wall_s = max(benchmark.limits.wall_s, WALL_PER_CPU * cpu_s)
    limits = replace(benchmark.limits, cpu_s=float(cpu_s), wall_s=wall_s)
    return replace(benchmark, limits=limits, time_rule=None)


def surround(benchmark: Benchmark, choice: PromptImports, form: PromptForm) -> Benchmark:
    """Return the benchmark with the code that ``choice`` puts before its programs.

    With ``none`` a program that answers in a chat runs alone, and nothing is imported for it. A
    base model's text continues the prompt, so the prompt stays part of its program.
    """
    if choice == "prepended":
        return benchmark
    problems = (replace(p, without_rules=(*p.without_rules, HINTS)) for p in benchmark.problems)
    if form == "chat":
        problems = (replace(p, tests=without_prompt_code(p.tests)) for p in problems)
    return replace(benchmark, problems=tuple(problems))


def without_prompt_code(tests: Tests) -> Tests:
    """Return the tests for programs that run alone.

    Separated tests keep the prompt's code, which they may call. Tests in the program's
    interpreter find there what the program itself brings.
    """
    if not tests.prompt_code:
        return tests
    code = tests.code
    if tests.integrity == "separated":
        code = f"{tests.prompt_code}\n{code}"
    preamble = tests.preamble.removesuffix(tests.prompt_code)
    return replace(tests, code=code, preamble=preamble, prompt_code="")
