"""Collect a run's samples: a small row for each, and its texts."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.errors import AssayError
from assay.prompts import STANDARD
from assay.report.inspection import find_prompts, loader_of, reason_of, status_of
from assay.report.pages.run.outcomes import CallOutcome, find_outcome
from assay.report.pages.sources import RunSource
from assay.runs import RunReader
from assay.runs.checks.run_folder import check_folder
from assay.runs.result import SampleResult, read_samples
from assay.types import Prompt

if TYPE_CHECKING:
    from assay.protocol import RecordedProtocol
    from assay.types import Benchmark


@dataclass(frozen=True, slots=True)
class RunSample:
    """A sample of a run with everything that a page shows of it."""

    found: SampleResult
    status: str
    reason: str
    program_group: int  # the same number for identical programs of a problem; -1: no program
    outcome: CallOutcome


@dataclass(frozen=True, slots=True)
class RunData:
    """A run with its samples, by task in the order of the benchmark."""

    source: RunSource
    tasks: Mapping[str, tuple[RunSample, ...]]
    prompts: Mapping[str, Prompt]
    prompt_note: str  # why there are no prompts
    statements: Mapping[str, Prompt] = field(default_factory=dict)  # if prompts are not known
    time_limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def protocol(self) -> RecordedProtocol:
        return self.source.entry.protocol

    def samples(self) -> Iterator[RunSample]:
        for samples in self.tasks.values():
            yield from samples


def load_run_data(source: RunSource, load: Callable[[str], Benchmark]) -> RunData:
    """Read the samples of a run. A run without a folder has none.

    ``load`` returns a benchmark by its name, for prompts and problems.
    """
    if source.folder is None:
        return RunData(source, {}, {}, "The run's folder is missing.")
    if source.entry.result is not None:
        check_folder(source.entry.result, source.folder, texts=True)
    reader = RunReader(source.folder)
    by_task: dict[str, list[SampleResult]] = {}
    if source.entry.result is not None:
        by_task = {problem.task_id: [] for problem in source.entry.result.problems}
    for found in read_samples(reader):
        by_task.setdefault(found.completion.task_id, []).append(found)
    protocol = source.entry.protocol
    load = loader_of(reader.about.benchmark_file, protocol.data_sha256, load)
    prompts, note = find_prompts(protocol, by_task, load)
    benchmark = find_benchmark(protocol, load)
    problems = benchmark.problems if benchmark else ()
    tests = {problem.task_id: problem.tests.code for problem in problems}
    return RunData(
        source,
        {task: tuple(_describe(found, tests.get(task, ""))) for task, found in by_task.items()},
        prompts,
        note,
        {} if prompts or not benchmark else find_statements(benchmark, by_task),
        reader.about.time_limits,
    )


def find_benchmark(
    protocol: RecordedProtocol, load: Callable[[str], Benchmark]
) -> Benchmark | None:
    """Return the benchmark of a run, or None if its data is not there."""
    with contextlib.suppress(AssayError):
        benchmark = load(protocol.benchmark)
        if benchmark.data_sha256 == protocol.data_sha256:
            return benchmark
    return None


def find_statements(benchmark: Benchmark, tasks: Container[str]) -> dict[str, Prompt]:
    """Return the text of problems by task.

    If a benchmark has a prompt of its own, a problem's text is only a part of it, such as the
    function to repair without its bug. So the prompt is returned.
    """
    own = benchmark.strategies.get(STANDARD)
    form = benchmark.form_for("chat")
    return {
        problem.task_id: own.build(problem, form) if own else Prompt(text=problem.prompt)
        for problem in benchmark.problems
        if problem.task_id in tasks
    }


def _describe(samples: list[SampleResult], tests: str) -> Iterator[RunSample]:
    groups: dict[bytes, int] = {}
    for found in sorted(samples, key=lambda one: one.completion.sample):
        group = -1
        if found.program is not None and found.program.code.strip():
            digest = hashlib.sha256(found.program.code.encode("utf-8", "surrogatepass")).digest()
            group = groups.setdefault(digest, len(groups))
        outcome = find_outcome(found.verdict, tests) if found.verdict else CallOutcome()
        yield RunSample(found, status_of(found), reason_of(found), group, outcome)
