"""Score completions that were generated elsewhere, and check what the score depends on."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay import benchmarks, extract, runs
from assay.datasets.catalogue import data_files
from assay.extract import extraction_rules
from assay.extract.workers import Change, Extraction, ExtractionRequest, Extractor
from assay.judging import judge_jobs, references, tasks_of
from assay.pipeline.config import JudgeConfig, ScoreConfig
from assay.pipeline.judging import open_sandbox
from assay.pipeline.plan import RunPlan, plan_score, replay
from assay.pipeline.problems import load_benchmark, select_problems
from assay.pipeline.run import execute
from assay.progress import Reporter
from assay.runs.result import Dependence, Result
from assay.sandbox.environments.interpreters import choose, for_extraction
from assay.types import Benchmark, Completion, Job, Program, PromptForm, Sample, SampleKey

__all__ = [
    "Change", "Dependence", "ExtractedProgram", "check_data_references", "check_references",
    "dependences", "extract_programs", "flaky", "load_recorded_samples", "score",
]  # fmt: skip


def score(config: ScoreConfig, reporter: Reporter) -> Result:
    """Judge all completions of a file that was generated elsewhere."""
    config.check()
    return execute(load_recorded_samples(config, reporter), reporter)


def load_recorded_samples(config: ScoreConfig, reporter: Reporter) -> RunPlan:
    """Return recorded completions and the part of the benchmark that they belong to."""
    return plan_score(config, select_problems(config, reporter), reporter)


def check_references(config: JudgeConfig, reporter: Reporter) -> dict[str, str]:
    """Run all reference solutions again. Return why each fails, by task; empty if it passes."""
    benchmark = load_benchmark(config, reporter)
    with contextlib.closing(open_sandbox(config, benchmark, reporter)) as judge:
        unscorable = references.check(benchmark, judge, reporter, again=True).unscorable
    return {p.task_id: unscorable.get(p.task_id, "") for p in benchmark.problems}


def check_data_references(name: str, data_dir: Path | None, reporter: Reporter) -> dict[str, str]:
    """Check the references of the largest benchmark that is made from a data file."""
    if data_files.get(name).is_text:
        return {}
    config = JudgeConfig(_largest_benchmark(name), results_dir=Path(), data_dir=data_dir)
    return check_references(config, reporter)


def _largest_benchmark(data: str) -> str:
    """Return the benchmark with most problems of a data file, by preference that of its name."""
    sizes = {
        name: about.problems
        for name in benchmarks.benchmarks.names()
        if (about := benchmarks.benchmarks.describe(name)) and about.data
        if about.data.name == data
    }
    return max(sizes, key=lambda name: (sizes[name], name == data), default=data)


def flaky(
    config: ScoreConfig, scored: Result, rounds: int, reporter: Reporter
) -> dict[str, list[str]]:
    """Execute everything ``rounds`` more times and return the samples whose verdict changed.

    Keys are ``task_id#sample``; values are the statuses of all executions in order.
    """
    seen = {key: [status] for key, status in _statuses(scored).items()}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            again = dataclasses.replace(
                config, results_dir=Path(folder), no_cache=True, select="",
                tests_seed=scored.tests_seed,
            )  # fmt: skip
            for key, status in _statuses(score(again, reporter)).items():
                seen[key].append(status)
    return {f"{t}#{s}": statuses for (t, s), statuses in seen.items() if len(set(statuses)) > 1}


def _statuses(result: Result) -> dict[SampleKey, str]:
    verdicts = runs.RunReader(result.folder).verdicts
    return {key: verdict.status for key, verdict in verdicts.items()}


@dataclass(frozen=True, slots=True)
class ExtractedProgram(Sample):
    """The program of one completion and the steps to it, or the reason why there is none."""

    program: Program
    changes: tuple[Change, ...]
    reason: str
    detail: str
    error: str | None = None  # why there is no completion


def extract_programs(
    config: ScoreConfig, reporter: Reporter, *, explain: bool = False
) -> Iterator[ExtractedProgram]:
    """Yield the program of each completion in the order of the file.

    ``changes`` are filled in only with ``explain``.
    """
    plan = load_recorded_samples(config, reporter)
    requests = _extraction_requests(plan, explain=explain)
    with Extractor(config.workers, interpreter=choose(config.python).path) as extractor:
        for completion, extraction in extractor.in_order(requests):
            yield ExtractedProgram(
                *completion.key, extraction.program, extraction.changes, extraction.reason,
                extraction.detail, completion.error,
            )  # fmt: skip


def dependences(config: ScoreConfig, scored: Result, reporter: Reporter) -> list[Dependence]:
    """Return how the verdicts would change without each rule that was used."""
    run = runs.RunReader(scored.folder)
    passed = {key for key, verdict in run.verdicts.items() if verdict.status == "pass"}
    plan = load_recorded_samples(config, reporter)
    with contextlib.ExitStack() as stack:
        judge = stack.enter_context(
            contextlib.closing(open_sandbox(config, plan.benchmark, reporter))
        )
        interpreter = for_extraction(judge.capabilities(), plan.benchmark.environment)
        extractor = stack.enter_context(Extractor(config.workers, interpreter=interpreter))
        texts = [(c, _forms(one)) for c, one in extractor.in_order(_extraction_requests(plan))]
        benchmark = references.check(plan.benchmark, judge, reporter).benchmark
        changed = []
        for rule in extraction_rules.names():
            jobs = list(_jobs_without(rule, texts, benchmark, plan.form, extractor, run.tests_seed))
            still: set[SampleKey] = set()
            # As in judging, the uncut form counts if the cut one fails.
            for waiting in _rounds(jobs, still):
                for done, verdict in enumerate(judge_jobs(judge, waiting), 1):
                    reporter.preparing(f"without the rule '{rule}':", done, len(waiting))
                    if verdict.status == "pass":
                        still.add(verdict.key)
            if jobs:
                before = passed & {first.key for first, *_ in jobs}
                lost, gained = len(before - still), len(still - before)
                changed.append(Dependence(rule, len(jobs), lost, gained))
    return changed


def _extraction_requests(
    plan: RunPlan, *, explain: bool = False
) -> Iterator[tuple[Completion, ExtractionRequest]]:
    """Yield the recorded completions of a plan, each with what is to be extracted from it."""
    problems = {p.task_id: p for p in plan.benchmark.problems}
    for completion in replay(plan.model, plan.keys):
        problem = problems[completion.task_id]
        yield completion, ExtractionRequest(completion.text, problem, plan.form, explain=explain)


def _forms(extraction: Extraction) -> tuple[Program, ...]:
    """Return the program, and its uncut form if it was cut in doubt."""
    return tuple(filter(None, (extraction.program, extraction.alternative)))


def _rounds(jobs: Sequence[tuple[Job, ...]], passed: set[SampleKey]) -> Iterator[list[Job]]:
    """Yield the jobs to execute first, then the uncut forms of those that did not pass."""
    yield [first for first, *_ in jobs if first.program != extract.NO_CODE]
    if second := [job for first, *others in jobs for job in others if first.key not in passed]:
        yield second


def _jobs_without(
    rule: str,
    texts: Iterable[tuple[Completion, tuple[Program, ...]]],
    benchmark: Benchmark,
    form: PromptForm,
    extractor: Extractor,
    tests_seed: str,
) -> Iterator[tuple[Job, ...]]:
    """Yield the programs that change without the rule, each with its uncut form if it has one."""
    tasks = tasks_of(benchmark)
    without = frozenset({rule})
    requests = (
        ((c, forms), ExtractionRequest(c.text, tasks[c.task_id].problem, form, without))
        for c, forms in texts
        if any(rule in program.rule.split("+") for program in forms)
    )
    for (completion, forms), other in extractor.in_order(requests):
        if [one.code for one in _forms(other)] != [one.code for one in forms]:
            yield tuple(
                tasks[completion.task_id].make_job(program, completion.sample, seed=tests_seed)
                for program in _forms(other)
            )
