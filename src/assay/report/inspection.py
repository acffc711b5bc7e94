"""Inspect the samples of a run: prompt, answer, program and verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay import benchmarks
from assay.errors import AssayError, UsageError
from assay.pipeline.prompting import complete_prompt, find_problem
from assay.prompts import find_strategy
from assay.report.run_benchmarks import loader_of
from assay.runs import RunReader
from assay.runs.checks.run_folder import read_checked_result
from assay.runs.history import describe_folder, find_folder
from assay.runs.result import Result, SampleResult, read_samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from assay.progress import Reporter
    from assay.protocol import RecordedProtocol
    from assay.types import Benchmark, Limits, Prompt

NOT_JUDGED = "not-judged"
RECORDED = "The completions were recorded elsewhere, so the prompt is not known."


@dataclass(frozen=True, slots=True)
class SampleFilter:
    """Select the samples of a run to show. An empty field admits all."""

    task: str = ""  # a task id, or the part of it after the last slash
    sample: int | None = None
    failed: bool = False  # only those that did not pass
    reason: str = ""

    def admits(self, found: SampleResult) -> bool:
        """Return whether to show the sample."""
        task_id, sample = found.completion.key
        return (
            self.task in ("", task_id, task_id.rpartition("/")[2])
            and self.sample in (None, sample)
            and (not self.failed or status_of(found) in ("fail", "invalid"))
            and self.reason in ("", reason_of(found))
        )


@dataclass(frozen=True, slots=True)
class InspectedRun:
    """A run and the samples that a filter admits. ``total`` counts all samples."""

    run: str
    benchmark: str  # with the label of the problems, such as humaneval[:10]
    model: str
    samples: tuple[SampleResult, ...]
    total: int
    protocol: RecordedProtocol
    time_limits: Mapping[str, float]  # CPU seconds by task, if they were derived by a rule
    benchmark_file: str = ""  # path of a benchmark of the user's own
    result: Result | None = None  # none: the run is not finished


@dataclass(frozen=True, slots=True)
class InspectedSample:
    """One sample with everything that is known about it."""

    run: str
    benchmark: str
    model: str
    found: SampleResult
    prompt: Prompt | None  # as it was sent, without the model's chat template
    prompt_note: str  # why there is no prompt
    limits: Limits | None


def status_of(found: SampleResult) -> str:
    """Return the status of a sample, even if it has no verdict."""
    return found.verdict.status if found.verdict else NOT_JUDGED


def reason_of(found: SampleResult) -> str:
    """Return the reason of a sample's verdict, even if it has no verdict."""
    return found.verdict.reason if found.verdict else NOT_JUDGED


def inspect_run(reference: str, results_dir: Path, wanted: SampleFilter) -> InspectedRun:
    """Read a run by its folder, results file or name. It may still be in progress.

    Raise UsageError if the filter admits no sample.
    """
    folder = find_folder(reference, results_dir)
    entry = describe_folder(folder)
    reader = RunReader(folder)
    samples = list(read_samples(reader))
    admitted = tuple(found for found in samples if wanted.admits(found))
    if not admitted:
        _refuse(wanted, samples, folder.name)
    name = f"{entry.benchmark}{entry.selection}"
    return InspectedRun(
        entry.run, name, entry.model, admitted, len(samples), entry.protocol,
        reader.about.time_limits, reader.about.benchmark_file, _find_result(folder),
    )  # fmt: skip


def _find_result(folder: Path) -> Result | None:
    """Return the run's result, if there is one. Raise RunError if it is wrong."""
    path = folder.with_name(f"{folder.name}.json")
    return read_checked_result(path, texts=True) if path.is_file() else None


def inspect_sample(
    run: InspectedRun, found: SampleResult, reporter: Reporter, data_dir: Path | None = None
) -> InspectedSample:
    """Return a sample of the run with its prompt."""
    prompt, note = _find_prompt(run, found.completion.task_id, reporter, data_dir)
    limits = _limits(run, found.completion.task_id)
    return InspectedSample(run.run, run.benchmark, run.model, found, prompt, note, limits)


def _limits(run: InspectedRun, task_id: str) -> Limits | None:
    """Return the limits that a task's programs were judged within, if they are known."""
    limits = run.protocol.limits
    cpu_s = run.time_limits.get(task_id)
    return limits if limits is None or cpu_s is None else replace(limits, cpu_s=cpu_s)


def _refuse(wanted: SampleFilter, samples: list[SampleResult], run: str) -> None:
    """Raise UsageError with the tasks or reasons that the run has."""
    if not samples:
        raise UsageError(f"{run}: has no samples yet. Wait for the first completion.")
    tasks = {found.completion.task_id for found in samples}
    if wanted.task and not any(SampleFilter(wanted.task).admits(found) for found in samples):
        raise UsageError(
            f"{wanted.task}: is not a task of {run}, which has {len(tasks)}. "
            f"Give one such as {samples[0].completion.task_id}."
        )
    reasons = ", ".join(sorted({reason_of(found) for found in samples}))
    raise UsageError(
        f"{run}: none of its {len(samples)} samples match the filters. Drop a filter. "
        f"The reasons in this run are {reasons}."
    )


def _find_prompt(
    run: InspectedRun, task_id: str, reporter: Reporter, data_dir: Path | None
) -> tuple[Prompt | None, str]:
    """Build the prompt again from the benchmark, or return why that is not possible."""

    def load(name: str) -> Benchmark:
        return benchmarks.load(name, reporter.note, data_dir)

    protocol = run.protocol
    of_run = loader_of(run.benchmark_file, protocol.data_sha256, load)
    prompts, note = find_prompts(protocol, [task_id], of_run)
    return prompts.get(task_id), note


def find_prompts(
    protocol: RecordedProtocol, tasks: Iterable[str], load: Callable[[str], Benchmark]
) -> tuple[dict[str, Prompt], str]:
    """Build the prompts of tasks again, or return why that is not possible.

    ``load`` returns a benchmark by its name.
    """
    if protocol.origin:
        return {}, RECORDED
    if protocol.asking is None:
        return {}, "The run is of an earlier version, which did not record the prompt settings."
    try:
        benchmark = load(protocol.benchmark)
        strategy = find_strategy(protocol.prompt_strategy, benchmark)
        by_id = {problem.task_id: problem for problem in benchmark.problems}
        problems = {task: by_id.get(task) or find_problem(benchmark, task) for task in tasks}
    except AssayError as error:
        return {}, f"The prompt cannot be built again: {error}"
    if benchmark.data_sha256 != protocol.data_sha256:
        return {}, f"The run used another version of the data of {protocol.benchmark}."
    if strategy.version != protocol.prompt_strategy_version:
        return {}, f"The run used another version of the strategy {protocol.prompt_strategy}."
    form, asking = protocol.asking.prompt_form, protocol.asking
    return {
        task_id: complete_prompt(strategy.build(problem, form), asking)
        for task_id, problem in problems.items()
    }, ""
