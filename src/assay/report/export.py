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
from assay.data.writing import make_folder, reporting, write_whole
from assay.errors import RunError, UsageError
from assay.extract.workers import ExtractionRequest, Extractor
from assay.pipeline.problems import surround
from assay.progress import Reporter, Silent
from assay.report.run_benchmarks import loader_of
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
        for key, found in extractor.in_order(requests):
            other = found.alternative
            program = other if other and other.rule == verdicts[key].rule else found.program
            codes[key] = program.code
    return codes


def _human_eval(target: Path, run: _Run) -> list[Path]:
    samples = [_continuation(judged) for judged in run.samples]
    results = [
        {**_continuation(judged), "result": _result(verdict), "passed": verdict.status == "pass"}
        for judged in run.valid
        for verdict in [judged[2]]
    ]
    path = target.with_name(f"{target.name}_results.jsonl")
    return [_write_lines(target, samples), _write_lines(path, results)]


def _continuation(judged: Judged) -> dict[str, str]:
    """Return the program as a completion: after the prompt, it defines the function again."""
    _, code, verdict = judged
    return {"task_id": verdict.task_id, "completion": f"\n{code}"}


def _result(verdict: Verdict) -> str:
    if verdict.status == "pass":
        return "passed"
    return "timed out" if verdict.reason == "timeout" else f"failed: {verdict.detail}"


def _evalplus(target: Path, run: _Run) -> list[Path]:
    samples = [{"task_id": v.task_id, "solution": code} for _, code, v in run.samples]
    by_task: dict[str, list[dict[str, object]]] = defaultdict(list)
    for _, code, verdict in run.valid:
        by_task[verdict.task_id].append(
            {
                "task_id": verdict.task_id,
                "solution": code,
                "base_status": _word(_base_passed(verdict)),
                "plus_status": _word(verdict.status == "pass") if run.has_plus else None,
                "base_fail_tests": [],
                "plus_fail_tests": [],
            }
        )
    results = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "hash": "",
        "eval": by_task,
        "pass_at_k": {
            group: _pass_at_k((v.task_id, passed(v)) for _, _, v in run.valid)
            for group, passed in (("base", _base_passed), ("plus", _passed))
            if run.valid and (group == "base" or run.has_plus)
        },
    }
    path = target.with_name(f"{target.name.removesuffix('.jsonl')}_eval_results.json")
    return [_write_lines(target, samples), _write(path, results)]


def _passed(verdict: Verdict) -> bool:
    return verdict.status == "pass"


def _base_passed(verdict: Verdict) -> bool:
    """Return whether the base tests passed. Without groups, all tests are base tests."""
    if verdict.status == "pass":
        return True
    right, all_of_them = verdict.groups.get("base", (0, 1))
    return right == all_of_them


def _word(passed: bool) -> str:
    return "pass" if passed else "fail"


def _evalplus_folder(target: Path, run: _Run) -> list[Path]:
    for _, code, verdict in run.samples:
        folder = target / _folder_name(verdict.task_id)
        make_folder(folder)
        # A lone surrogate cannot be written. Its escape means the same.
        text = code.encode(errors="backslashreplace").decode()
        write_whole(folder / f"{verdict.sample}.py", text)
    return [target]


def _folder_name(task_id: str) -> str:
    """Return the task's id as a single file name that is never a path."""
    return re.sub(r"^\.|[^\w.-]", "_", task_id, flags=re.ASCII)


def _bigcodebench(target: Path, run: _Run) -> list[Path]:
    samples = [
        {"task_id": v.task_id, "solution": code, "raw_solution": text}
        for text, code, v in run.samples
    ]
    by_task: dict[str, list[dict[str, object]]] = defaultdict(list)
    for _, code, verdict in run.valid:
        status = "timeout" if verdict.reason == "timeout" else _word(verdict.status == "pass")
        details = {verdict.failing_test or "ALL": verdict.detail} if verdict.detail else {}
        by_task[verdict.task_id].append(
            {
                "task_id": verdict.task_id,
                "solution": code,
                "status": status,
                "details": details,
            }
        )
    results = {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"), "eval": by_task}
    scores = _pass_at_k((v.task_id, v.status == "pass") for _, _, v in run.valid)
    name = target.name.removesuffix(".jsonl")
    return [
        _write_lines(target, samples),
        _write(target.with_name(f"{name}_eval_results.json"), results),
        _write(target.with_name(f"{name}_pass_at_k.json"), scores),
    ]


def _pass_at_k(passed: Iterable[tuple[str, bool]]) -> dict[str, float]:
    by_task: dict[str, list[bool]] = defaultdict(list)
    for task_id, right in passed:
        by_task[task_id].append(right)
    tallies = [scoring.Tally(task_id, len(found), sum(found)) for task_id, found in by_task.items()]
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
