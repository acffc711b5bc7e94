"""Extract programs from recorded completions, and measure the effect of each rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from assay import extract, runs
from assay.extract import extraction_rules
from assay.extract.workers import Change, Extraction, ExtractionRequest, Extractor
from assay.judging import judge_jobs, references, tasks_of
from assay.pipeline import ScoreConfig, load_recorded_samples
from assay.pipeline.judging import open_sandbox
from assay.pipeline.samples import replay
from assay.progress import Reporter
from assay.runs.result import Dependence, Result
from assay.sandbox.environments.interpreters import choose, for_extraction
from assay.types import Benchmark, Completion, Job, Program, PromptForm, Sample, SampleKey

__all__ = ["Change", "Dependence", "ExtractedProgram", "dependences", "extract_programs"]


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
    benchmark, completions, form = _completions(config, reporter)
    problems = {p.task_id: p for p in benchmark.problems}
    requests = (
        (c, ExtractionRequest(c.text, problems[c.task_id], form, explain=explain))
        for c in completions
    )
    with Extractor(config.workers, interpreter=choose(config.python).path) as extractor:
        for completion, found in extractor.in_order(requests):
            yield ExtractedProgram(
                *completion.key, found.program, found.changes, found.reason, found.detail,
                completion.error,
            )  # fmt: skip


def dependences(config: ScoreConfig, scored: Result, reporter: Reporter) -> list[Dependence]:
    """Return how the verdicts would change without each rule that was used."""
    run = runs.RunReader(scored.folder)
    passed = {key for key, verdict in run.verdicts.items() if verdict.status == "pass"}
    benchmark, completions, form = _completions(config, reporter)
    problems = {p.task_id: p for p in benchmark.problems}
    requests = ((c, ExtractionRequest(c.text, problems[c.task_id], form)) for c in completions)
    judge = open_sandbox(config, benchmark, reporter)
    interpreter = for_extraction(judge.capabilities(), benchmark.environment)
    extractor = Extractor(config.workers, interpreter=interpreter)
    found = []
    try:
        texts = [(c, _forms(one)) for c, one in extractor.in_order(requests)]
        benchmark = references.check(benchmark, judge, reporter).benchmark
        for rule in extraction_rules.names():
            jobs = list(_jobs_without(rule, texts, benchmark, form, extractor, run.tests_seed))
            still: set[SampleKey] = set()
            # As in judging, the uncut form counts if the cut one fails.
            for waiting in _rounds(jobs, still):
                for done, verdict in enumerate(judge_jobs(judge, waiting), 1):
                    reporter.preparing(f"without the rule '{rule}':", done, len(waiting))
                    if verdict.status == "pass":
                        still.add(verdict.key)
            if jobs:
                before = passed & {first.key for first, *_ in jobs}
                found.append(Dependence(rule, len(jobs), len(before - still), len(still - before)))
    finally:
        extractor.close()
        judge.close()
    return found


def _completions(
    config: ScoreConfig, reporter: Reporter
) -> tuple[Benchmark, Iterator[Completion], PromptForm]:
    benchmark, model, keys = load_recorded_samples(config, reporter)
    return benchmark, replay(model, keys), benchmark.form_for(model.identity.prompt_form)


def _forms(found: Extraction) -> tuple[Program, ...]:
    """Return the program, and its uncut form if it was cut in doubt."""
    return (found.program,) if found.alternative is None else (found.program, found.alternative)


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
