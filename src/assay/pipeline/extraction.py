"""Extraction by itself: what the rules make of recorded completions, and what each is good for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from assay import extract, runs, sandbox
from assay.extract import RULES
from assay.extract.workers import Change, ExtractionRequest, Extractor
from assay.pipeline import ScoreConfig, recorded, references
from assay.pipeline.samples import replay
from assay.progress import Reporter
from assay.runs.result import Dependence, Result
from assay.types import Benchmark, Completion, Job, Program, PromptForm, Sample

__all__ = ["RULES", "Change", "Dependence", "Extracted", "dependences", "extracted"]


@dataclass(frozen=True, slots=True)
class Extracted(Sample):
    """The program of one completion, and the way to it; or the reason why there is none."""

    program: Program
    changes: tuple[Change, ...]
    reason: str
    detail: str
    error: str | None = None  # of the completion: there was none to take a program from


def extracted(
    config: ScoreConfig, reporter: Reporter, *, explain: bool = False
) -> Iterator[Extracted]:
    """One for each completion of the file, in its order; ``changes`` only to ``explain``."""
    benchmark, completions, form = _completions(config, reporter)
    problems = {p.task_id: p for p in benchmark.problems}
    requests = (
        (c, ExtractionRequest(c.text, problems[c.task_id], form, explain=explain))
        for c in completions
    )
    with Extractor(config.workers) as extractor:
        for completion, found in extractor.in_order(requests):
            yield Extracted(
                *completion.key, found.program, found.changes, found.reason, found.detail,
                completion.error,
            )  # fmt: skip


def dependences(config: ScoreConfig, scored: Result, reporter: Reporter) -> list[Dependence]:
    """For every rule that was used, how the verdicts would be without it."""
    run = runs.RunReader(scored.folder)
    passed = {key for key, verdict in run.verdicts.items() if verdict.status == "pass"}
    benchmark, completions, form = _completions(config, reporter)
    problems = {p.task_id: p for p in benchmark.problems}
    requests = ((c, ExtractionRequest(c.text, problems[c.task_id], form)) for c in completions)
    extractor = Extractor(config.workers)
    judge = sandbox.open_sandbox(config.sandbox, config.workers, config.sandbox_tier)
    found = []
    try:
        texts = [(c, one.program) for c, one in extractor.in_order(requests)]
        benchmark = references.check(benchmark, judge, reporter).benchmark
        for rule in RULES:
            jobs = list(_changed(rule, texts, benchmark, form, extractor, run.tests_seed))
            waiting = [job for job in jobs if job.program != extract.NO_CODE]
            still = set()
            for done, verdict in enumerate(judge.judge(waiting), 1):
                reporter.preparing(f"without the rule '{rule}':", done, len(waiting))
                if verdict.status == "pass":
                    still.add(verdict.key)
            if jobs:
                before = passed & {job.key for job in jobs}
                found.append(Dependence(rule, len(jobs), len(before - still), len(still - before)))
    finally:
        extractor.close()
        judge.close()
    return found


def _completions(
    config: ScoreConfig, reporter: Reporter
) -> tuple[Benchmark, Iterator[Completion], PromptForm]:
    benchmark, model, keys = recorded(config, reporter)
    return benchmark, replay(model, keys), model.identity.prompt_form


def _changed(
    rule: str,
    texts: Iterable[tuple[Completion, Program]],
    benchmark: Benchmark,
    form: PromptForm,
    extractor: Extractor,
    tests_seed: str,
) -> Iterator[Job]:
    """The programs that are others without the rule."""
    problems = {p.task_id: p for p in benchmark.problems}
    without = frozenset({rule})
    requests = (
        ((c, program), ExtractionRequest(c.text, problems[c.task_id], form, without))
        for c, program in texts
        if rule in program.rule.split("+")
    )
    for (completion, program), other in extractor.in_order(requests):
        if other.program.code != program.code:
            yield Job(
                *completion.key, other.program, problems[completion.task_id].tests,
                benchmark.limits, benchmark.imports, benchmark.environment, tests_seed,
            )  # fmt: skip
