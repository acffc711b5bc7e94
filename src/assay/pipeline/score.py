"""Score completions that were generated elsewhere."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

from assay import benchmarks, models, runs, selection
from assay.datasets.catalogue import data_files
from assay.judging import references
from assay.pipeline.config import JudgeConfig, ScoreConfig
from assay.pipeline.judging import (
    check_workers,
    judge_samples,
    load_benchmark,
    open_sandbox,
    select_problems,
)
from assay.pipeline.samples import (
    match_samples,
    recorded_samples,
)
from assay.progress import Reporter
from assay.runs import Result
from assay.types import Benchmark, SampleKey


def score(config: ScoreConfig, reporter: Reporter) -> Result:
    """Judge all completions of a file that was generated elsewhere."""
    check_workers(config)
    if config.select:
        selection.methods.get(config.select)
    selected = select_problems(config, reporter)
    benchmark, model, keys = match_samples(config, selected, reporter)
    form = benchmark.form_for(model.identity.prompt_form)
    samples = recorded_samples(model, keys, form)
    return judge_samples(config, selected, benchmark, samples, model, reporter)


def load_recorded_samples(
    config: ScoreConfig, reporter: Reporter
) -> tuple[Benchmark, models.RecordedModel, list[SampleKey]]:
    """Return recorded completions and the part of the benchmark that they belong to."""
    return match_samples(config, select_problems(config, reporter), reporter)


def check_references(config: JudgeConfig, reporter: Reporter) -> dict[str, str]:
    """Run all reference solutions again. Return why each fails, by task; empty if it passes."""
    benchmark = load_benchmark(config, reporter)
    judge = open_sandbox(config, benchmark, reporter)
    try:
        unscorable = references.check(benchmark, judge, reporter, again=True).unscorable
    finally:
        judge.close()
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
    return {f"{t}#{s}": found for (t, s), found in seen.items() if len(set(found)) > 1}


def _statuses(result: Result) -> dict[SampleKey, str]:
    run = runs.RunReader(result.folder)
    return {key: verdict.status for key, verdict in run.verdicts.items()}
