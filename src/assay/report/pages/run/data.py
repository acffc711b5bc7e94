"""Collect a run's samples: a small row for each, and its texts."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.errors import AssayError
from assay.report.inspection import find_prompts, reason_of, status_of
from assay.report.pages.run.outcomes import Outcome, find_outcome
from assay.report.pages.sources import RunSource
from assay.report.run_benchmarks import loader_of
from assay.runs import RunReader
from assay.runs.result import SampleResult, read_samples

if TYPE_CHECKING:
    from assay.protocol import RecordedProtocol
    from assay.types import Benchmark, Problem, Prompt


@dataclass(frozen=True, slots=True)
class RunSample:
    """A sample of a run with everything that a page shows of it."""

    found: SampleResult
    status: str
    reason: str
    program_group: int  # the same number for identical programs of a problem; -1: no program
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class RunData:
    """A run with its samples, by task in the order of the benchmark."""

    source: RunSource
    tasks: Mapping[str, tuple[RunSample, ...]]
    prompts: Mapping[str, Prompt]
    prompt_note: str  # why there are no prompts
    statements: Mapping[str, str] = field(default_factory=dict)  # by task, if prompts are not known
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
    reader = RunReader(source.folder)
    by_task: dict[str, list[SampleResult]] = {}
    if source.entry.result is not None:
        by_task = {problem.task_id: [] for problem in source.entry.result.problems}
    for found in read_samples(reader):
        by_task.setdefault(found.completion.task_id, []).append(found)
    protocol = source.entry.protocol
    load = loader_of(reader.about.benchmark_file, protocol.data_sha256, load)
    prompts, note = find_prompts(protocol, by_task, load)
    problems = find_problems(protocol, load)
    tests = {task: problem.tests.code for task, problem in problems.items()}
    return RunData(
        source,
        {task: tuple(_describe(found, tests.get(task, ""))) for task, found in by_task.items()},
        prompts,
        note,
        {} if prompts else {task: problem.prompt for task, problem in problems.items()},
        reader.about.time_limits,
    )


def find_problems(
    protocol: RecordedProtocol, load: Callable[[str], Benchmark]
) -> dict[str, Problem]:
    """Return the problems of a run's benchmark by task, or nothing if its data is not there."""
    with contextlib.suppress(AssayError):
        benchmark = load(protocol.benchmark)
        if benchmark.data_sha256 == protocol.data_sha256:
            return {problem.task_id: problem for problem in benchmark.problems}
    return {}


def _describe(samples: list[SampleResult], tests: str) -> Iterator[RunSample]:
    groups: dict[bytes, int] = {}
    for found in sorted(samples, key=lambda one: one.completion.sample):
        group = -1
        if found.program is not None and found.program.code.strip():
            digest = hashlib.sha256(found.program.code.encode("utf-8", "surrogatepass")).digest()
            group = groups.setdefault(digest, len(groups))
        outcome = find_outcome(found.verdict, tests) if found.verdict else Outcome()
        yield RunSample(found, status_of(found), reason_of(found), group, outcome)
