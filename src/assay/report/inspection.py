"""Inspect the samples of a run: prompt, answer, program and verdict, also as text."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from assay import benchmarks
from assay.data.failures import explain_failure
from assay.errors import AssayError, DataError, UsageError
from assay.pipeline.prompting import complete_prompt, find_problem
from assay.progress import Reporter
from assay.prompts import find_strategy, name_parts
from assay.protocol import RecordedProtocol
from assay.report.text import table
from assay.runs import RunReader
from assay.runs.checks.run_folder import read_checked_result
from assay.runs.history import describe_folder, find_folder
from assay.runs.result import Result, SampleResult, read_samples
from assay.types import Benchmark, Limits, Program, Prompt, Verdict

Load = Callable[[str], "Benchmark"]  # takes the name of a benchmark
NOT_JUDGED = "not-judged"
RECORDED = "The completions were recorded elsewhere, so the prompt is not known."
SAMPLE_HEADINGS = ("task", "sample", "status", "reason", "rule", "tokens", "detail")
FINISH = {"stop": "ended by itself", "length": "cut off at the token limit"}


def loader_of(file: str, data_sha256: str | None, load: Load) -> Load:
    """Return what loads the benchmark of a run. ``file`` is its path if it is a user's own.

    A run can come from someone else. So a file is used only if it has the run's digest, and a path
    in place of a name is refused.
    """

    @functools.cache
    def load_own(_: str) -> Benchmark:
        return benchmarks.load_unchanged(Path(file), data_sha256 or "")

    def load_named(name: str) -> Benchmark:
        if benchmarks.is_file(name):
            raise DataError(f"{name}: is not the name of a benchmark. Restore the run's files.")
        return load(name)

    return load_own if file else load_named


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


def status_of(sample: SampleResult) -> str:
    """Return the status of a sample, even if it has no verdict."""
    return sample.verdict.status if sample.verdict else NOT_JUDGED


def reason_of(sample: SampleResult) -> str:
    """Return the reason of a sample's verdict, even if it has no verdict."""
    return sample.verdict.reason if sample.verdict else NOT_JUDGED


def inspect_run(reference: str, results_dir: Path, wanted: SampleFilter) -> InspectedRun:
    """Read a run by its folder, results file or name. It may still be in progress.

    Raise UsageError if the filter admits no sample.
    """
    folder = find_folder(reference, results_dir)
    entry = describe_folder(folder)
    reader = RunReader(folder)
    samples = list(read_samples(reader))
    admitted = tuple(sample for sample in samples if wanted.admits(sample))
    if not admitted:
        _refuse(wanted, samples, folder.name)
    name, path = f"{entry.benchmark}{entry.selection}", folder.with_name(f"{folder.name}.json")
    result = read_checked_result(path, texts=True) if path.is_file() else None
    return InspectedRun(
        entry.run, name, entry.model, admitted, len(samples), entry.protocol,
        reader.about.time_limits, reader.about.benchmark_file, result,
    )  # fmt: skip


def inspect_sample(
    run: InspectedRun, found: SampleResult, reporter: Reporter, data_dir: Path | None = None
) -> InspectedSample:
    """Return a sample of the run with its prompt and limits, as far as they are known."""
    task_id, protocol = found.completion.task_id, run.protocol

    def load(name: str) -> Benchmark:
        return benchmarks.load(name, reporter.note, data_dir)

    of_run = loader_of(run.benchmark_file, protocol.data_sha256, load)
    prompts, note = find_prompts(protocol, [task_id], of_run)
    limits, cpu_s = protocol.limits, run.time_limits.get(task_id)
    if limits is not None and cpu_s is not None:
        limits = replace(limits, cpu_s=cpu_s)
    prompt = prompts.get(task_id)
    return InspectedSample(run.run, run.benchmark, run.model, found, prompt, note, limits)


def _refuse(wanted: SampleFilter, samples: list[SampleResult], run: str) -> None:
    """Raise UsageError with the tasks or reasons that the run has."""
    if not samples:
        raise UsageError(f"{run}: has no samples yet. Wait for the first completion.")
    tasks = {sample.completion.task_id for sample in samples}
    if wanted.task and not any(SampleFilter(wanted.task).admits(sample) for sample in samples):
        raise UsageError(
            f"{wanted.task}: is not a task of {run}, which has {len(tasks)}. "
            f"Give one such as {samples[0].completion.task_id}."
        )
    reasons = ", ".join(sorted({reason_of(sample) for sample in samples}))
    raise UsageError(
        f"{run}: none of its {len(samples)} samples match the filters. Drop a filter. "
        f"The reasons in this run are {reasons}."
    )


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
    asking = protocol.asking
    return {
        task_id: complete_prompt(strategy.build(problem, asking.prompt_form), asking)
        for task_id, problem in problems.items()
    }, ""


@dataclass(frozen=True, slots=True)
class SampleSection:
    """A part of a sample's page. ``long`` texts may be shortened on a terminal."""

    title: str
    text: str
    long: bool = False


def list_samples(run: InspectedRun) -> list[str]:
    """Return a line per sample, with headings."""
    return table([SAMPLE_HEADINGS, *(_row(sample) for sample in run.samples)])


def _row(sample: SampleResult) -> tuple[str, ...]:
    completion, verdict = sample.completion, sample.verdict
    return (
        completion.task_id,
        str(completion.sample),
        status_of(sample),
        reason_of(sample),
        verdict.rule if verdict else "",
        str(completion.tokens_generated),
        explain_failure(verdict) if verdict else "",
    )


def describe_sample(inspected: InspectedSample) -> list[SampleSection]:
    """Return the sections of a sample: prompt, answer, program, output, verdict."""
    sample, prompt = inspected.found, inspected.prompt
    completion, verdict = sample.completion, sample.verdict
    finish = FINISH.get(completion.finish_reason, completion.finish_reason)
    answer = completion.text if completion.error is None else f"error: {completion.error}"
    sections = [SampleSection("Prompt", inspected.prompt_note)]
    if prompt is not None:
        parts = name_parts(prompt)
        sections = [SampleSection(f"Prompt ({name})", text, long=True) for name, text in parts]
    title = f"Answer ({completion.tokens_generated} tokens, {finish})"
    sections += [SampleSection(title, answer, long=True), _describe_program(sample.program)]
    if verdict and verdict.output:
        sections.append(SampleSection("Output of the program (its end)", verdict.output))
    description = _describe_verdict(verdict, inspected.limits)
    return [*sections, SampleSection(f"Verdict: {status_of(sample)}", description)]


def _describe_program(program: Program | None) -> SampleSection:
    if program is None:
        return SampleSection("Program", "No program is stored.")
    lines = program.code.splitlines()
    width = len(str(len(lines)))
    numbered = "\n".join(f"{number:>{width}}  {line}" for number, line in enumerate(lines, 1))
    return SampleSection(f"Program (extraction rule {program.rule})", numbered, long=True)


def _describe_verdict(verdict: Verdict | None, limits: Limits | None) -> str:
    if verdict is None:
        return "The sample has not been judged yet."
    groups = (f"{name} {right}/{cases}" for name, (right, cases) in verdict.groups.items())
    rows = [
        ("reason", verdict.reason),
        ("test", verdict.failing_test),
        ("detail", explain_failure(verdict)),
        ("cases", ", ".join(groups)),
        ("used", "" if verdict.integrity == "not-run" else _describe_use(verdict, limits)),
        ("tests", verdict.integrity),
    ]
    return "\n".join(f"{name:8}{text}" for name, text in rows if text)


def _describe_use(verdict: Verdict, limits: Limits | None) -> str:
    most = limits and (f" of {limits.cpu_s:g}", f" of {limits.wall_s:g}", f" of {limits.memory_mb}")
    cpu, wall, memory = most or ("", "", "")
    return (
        f"{verdict.cpu_s:.2f}{cpu} s CPU time, {verdict.wall_s:.2f}{wall} s wall time, "
        f"{verdict.peak_mb:.0f}{memory} MB memory"
    )
