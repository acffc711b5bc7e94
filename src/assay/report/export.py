"""Export a run in the file formats of other harnesses."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from assay import benchmarks, runs, scoring
from assay.data.failures import explain_failure
from assay.data.writing import make_folder, reporting, write_whole
from assay.errors import RunError, UsageError
from assay.extract.workers import ExtractionRequest, Extractor
from assay.pipeline.problems import surround
from assay.progress import Reporter, Silent
from assay.report.inspection import loader_of
from assay.runs import Result
from assay.sandbox.environments.interpreters import for_version
from assay.types import Benchmark, Completion, SampleKey, Verdict

SILENT = Silent()
Judged = tuple[str, str, Verdict]  # the completion's text, the program in it, the verdict


@dataclass(frozen=True, slots=True)
class Exported:
    """The files that were written, and the number of invalid samples that they leave out."""

    paths: list[Path]
    left_out: int


@dataclass(frozen=True, slots=True)
class _Run:
    """All samples with a program. ``has_plus`` says if there were tests beyond the base ones."""

    samples: list[Judged]
    has_plus: bool

    @property
    def valid(self) -> list[Judged]:
        """The samples with a valid verdict."""
        return [judged for judged in self.samples if judged[2].status != "invalid"]


def export(
    result: Result,
    run_folder: Path,
    form: str,
    target: Path,
    reporter: Reporter = SILENT,
    data_dir: Path | None = None,
) -> Exported:
    """Write the run's samples and results. ``data_dir`` is a folder with benchmark data."""
    if form not in FORMATS:
        raise UsageError(f"format '{form}': unknown. Choose {', '.join(FORMATS)}.")
    folder = runs.RunReader(run_folder)
    has_plus = "plus" in result.results.groups
    run = _Run(list(_judged(result, folder, reporter, data_dir)), has_plus)
    left_out = sum(verdict.status == "invalid" for verdict in folder.verdicts.values())
    return Exported(FORMATS[form](target, run), left_out)


def _judged(
    result: Result, folder: runs.RunReader, reporter: Reporter, data_dir: Path | None
) -> Iterator[Judged]:
    """Yield the judged samples in the order of the completions."""
    verdicts = folder.verdicts
    codes = {
        program.key: program.code
        for program in folder.read_programs()
        if program.key in verdicts and verdicts[program.key].rule == program.rule
    }
    completions = [c for c in folder.read_completions() if c.key in verdicts]
    if missing := [c for c in completions if c.key not in codes]:
        load = loader_of(
            folder.about.benchmark_file,
            result.protocol.data_sha256,
            lambda name: benchmarks.load(name, reporter.note, data_dir),
        )
        codes |= _extracted(result, missing, verdicts, load(result.benchmark))
    for completion in completions:
        if completion.key in codes:
            yield completion.text, codes[completion.key], verdicts[completion.key]


def _extracted(
    result: Result,
    completions: Iterable[Completion],
    verdicts: Mapping[SampleKey, Verdict],
    benchmark: Benchmark,
) -> dict[SampleKey, str]:
    """Extract programs that the run does not store: unrun ones, and those of earlier versions."""
    if result.model_identity is None:
        raise RunError(f"{result.path}: model_identity is missing. Restore the original file.")
    form = benchmark.form_for(result.model_identity.prompt_form)
    choice = result.protocol.prompt_imports or "prepended"
    problems = {p.task_id: p for p in surround(benchmark, choice, form).problems}
    requests = (
        (completion.key, ExtractionRequest(completion.text, problems[completion.task_id], form))
        for completion in completions
        if completion.task_id in problems
    )
    codes = {}
    with Extractor(interpreter=for_version(result.protocol.python or "")) as extractor:
        for key, extraction in extractor.in_order(requests):
            other = extraction.alternative
            program = other if other and other.rule == verdicts[key].rule else extraction.program
            codes[key] = program.code
    return codes


def _human_eval(target: Path, run: _Run) -> list[Path]:
    """Write programs as completions: after the prompt, they define the function again."""

    def line(judged: Judged) -> dict[str, object]:
        _, code, verdict = judged
        return {"task_id": verdict.task_id, "completion": f"\n{code}"}

    def result(verdict: Verdict) -> dict[str, object]:
        failure = (
            "timed out" if verdict.reason == "timeout" else f"failed: {explain_failure(verdict)}"
        )
        passed = verdict.status == "pass"
        return {"result": "passed" if passed else failure, "passed": passed}

    results = [{**line(judged), **result(judged[2])} for judged in run.valid]
    path = target.with_name(f"{target.name}_results.jsonl")
    return [_write_lines(target, map(line, run.samples)), _write_lines(path, results)]


def _evalplus(target: Path, run: _Run) -> list[Path]:
    def entry(verdict: Verdict) -> dict[str, object]:
        return {
            "base_status": _word(_base_passed(verdict)),
            "plus_status": _word(verdict.status == "pass") if run.has_plus else None,
            "base_fail_tests": [],
            "plus_fail_tests": [],
        }

    verdicts = [verdict for _, _, verdict in run.valid]
    scores = {"base": _pass_at_k(verdicts, _base_passed)} if verdicts else {}
    if verdicts and run.has_plus:
        scores["plus"] = _pass_at_k(verdicts)
    results = {"date": _now(), "hash": "", "eval": _by_task(run, entry), "pass_at_k": scores}
    samples = [{"task_id": v.task_id, "solution": code} for _, code, v in run.samples]
    path = target.with_name(f"{target.name.removesuffix('.jsonl')}_eval_results.json")
    return [_write_lines(target, samples), _write(path, results)]


def _base_passed(verdict: Verdict) -> bool:
    """Return whether the base tests passed. Without groups, all tests are base tests."""
    right, all_of_them = verdict.groups.get("base", (0, 1))
    return verdict.status == "pass" or right == all_of_them


def _word(passed: bool) -> str:
    return "pass" if passed else "fail"


def _evalplus_folder(target: Path, run: _Run) -> list[Path]:
    for _, code, verdict in run.samples:
        # The task's id as a single file name that is never a path.
        folder = target / re.sub(r"^\.|[^\w.-]", "_", verdict.task_id, flags=re.ASCII)
        make_folder(folder)
        # A lone surrogate cannot be written. Its escape means the same.
        text = code.encode(errors="backslashreplace").decode()
        write_whole(folder / f"{verdict.sample}.py", text)
    return [target]


def _bigcodebench(target: Path, run: _Run) -> list[Path]:
    def entry(verdict: Verdict) -> dict[str, object]:
        status = "timeout" if verdict.reason == "timeout" else _word(verdict.status == "pass")
        words = explain_failure(verdict)
        details = {verdict.failing_test or "ALL": words} if words else {}
        return {"status": status, "details": details}

    samples = [
        {"task_id": v.task_id, "solution": code, "raw_solution": text}
        for text, code, v in run.samples
    ]
    results = {"date": _now(), "eval": _by_task(run, entry)}
    scores = _pass_at_k([verdict for _, _, verdict in run.valid])
    name = target.name.removesuffix(".jsonl")
    return [
        _write_lines(target, samples),
        _write(target.with_name(f"{name}_eval_results.json"), results),
        _write(target.with_name(f"{name}_pass_at_k.json"), scores),
    ]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M")


def _by_task(run: _Run, entry: Callable[[Verdict], dict[str, object]]) -> dict[str, list[object]]:
    """Return the valid samples by task: id, program, and what a format says of the verdict."""
    by_task: dict[str, list[object]] = defaultdict(list)
    for _, code, verdict in run.valid:
        about = {"task_id": verdict.task_id, "solution": code, **entry(verdict)}
        by_task[verdict.task_id].append(about)
    return by_task


def _pass_at_k(
    verdicts: Iterable[Verdict], passed: Callable[[Verdict], bool] = lambda v: v.status == "pass"
) -> dict[str, float]:
    by_task: dict[str, list[bool]] = defaultdict(list)
    for verdict in verdicts:
        by_task[verdict.task_id].append(passed(verdict))
    tallies = [
        scoring.Tally(task_id, len(results), sum(results)) for task_id, results in by_task.items()
    ]
    return {f"pass@{e.k}": e.value for e in scoring.estimates(tallies)}


def _write_lines(path: Path, lines: Iterable[Mapping[str, object]]) -> Path:
    with reporting(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "".join(json.dumps(line) + "\n" for line in lines))
    return path


def _write(path: Path, content: object) -> Path:
    write_whole(path, json.dumps(content, indent=1))
    return path


FORMATS: dict[str, Callable[[Path, _Run], list[Path]]] = {
    "human-eval": _human_eval,
    "evalplus": _evalplus,
    "evalplus-folder": _evalplus_folder,
    "bigcodebench": _bigcodebench,
}
