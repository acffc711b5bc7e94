"""A run in the formats that other harnesses read and write."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay import benchmarks, extract, runs, scoring
from assay.errors import UsageError
from assay.pipeline.stream import Observer
from assay.types import Tally, Verdict

Judged = tuple[str, str, Verdict]  # the completion's text, the program in it, the verdict


def export(
    result: dict[str, Any], run_folder: Path, form: str, target: Path, observer: Observer
) -> list[Path]:
    """Write the run's samples and results; the files that were made."""
    if form not in FORMATS:
        raise UsageError(f"unknown format '{form}': choose {', '.join(FORMATS)}")
    return FORMATS[form](target, list(_judged(result, run_folder, observer)))


def _judged(result: dict[str, Any], folder: Path, observer: Observer) -> Iterator[Judged]:
    problems = {p.task_id: p for p in benchmarks.load(result["benchmark"], observer.note).problems}
    form = result["model_identity"]["prompt_form"]
    run = runs.RunFolder(folder)
    try:
        verdicts = run.verdicts
        for completion in run.read_completions():
            if (verdict := verdicts.get(completion.key)) and completion.task_id in problems:
                found = extract.extract(completion.text, problems[completion.task_id], form)
                yield completion.text, found.code, verdict
    finally:
        run.close()


def _human_eval(target: Path, judged: list[Judged]) -> list[Path]:
    """A program stands behind the prompt as well as its continuation does: it defines it anew."""
    samples = [{"task_id": v.task_id, "completion": f"\n{code}"} for _, code, v in judged]
    results = [
        {**sample, "result": _result(verdict), "passed": verdict.status == "pass"}
        for sample, (_, _, verdict) in zip(samples, judged, strict=True)
    ]
    path = target.with_name(f"{target.name}_results.jsonl")
    return [_write_lines(target, samples), _write_lines(path, results)]


def _result(verdict: Verdict) -> str:
    if verdict.status == "pass":
        return "passed"
    return "timed out" if verdict.reason == "timeout" else f"failed: {verdict.detail}"


def _evalplus(target: Path, judged: list[Judged]) -> list[Path]:
    samples = [{"task_id": v.task_id, "solution": code} for _, code, v in judged]
    by_task: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for _, code, verdict in judged:
        by_task[verdict.task_id].append(
            {
                "task_id": verdict.task_id,
                "solution": code,
                "base_status": _status(verdict, "base"),
                "plus_status": _status(verdict, "plus"),
                "base_fail_tests": [],
                "plus_fail_tests": [],
            }
        )
    results = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "hash": "",
        "eval": by_task,
        "pass_at_k": {
            group: _pass_at_k((s["task_id"], s[f"{group}_status"] == "pass") for s in all_of_them)
            for group in ("base", "plus")
            if (all_of_them := [s for found in by_task.values() for s in found])
        },
    }
    path = target.with_name(f"{target.name.removesuffix('.jsonl')}_eval_results.json")
    return [_write_lines(target, samples), _write(path, results)]


def _status(verdict: Verdict, group: str) -> str | None:
    """Of the base tests alone, or of all; where tests have no groups they are the base ones."""
    if not verdict.groups:
        whole = "pass" if verdict.status == "pass" else "fail"
        return whole if group == "base" else None
    names = ("base",) if group == "base" else tuple(verdict.groups)
    right = all(verdict.groups[name][0] == verdict.groups[name][1] for name in names)
    return "pass" if right else "fail"


def _evalplus_folder(target: Path, judged: list[Judged]) -> list[Path]:
    for _, code, verdict in judged:
        folder = target / verdict.task_id.replace("/", "_")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{verdict.sample}.py").write_text(code, encoding="utf-8")
    return [target]


def _bigcodebench(target: Path, judged: list[Judged]) -> list[Path]:
    samples = [
        {"task_id": v.task_id, "solution": code, "raw_solution": text} for text, code, v in judged
    ]
    by_task: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for _, code, verdict in judged:
        status = "pass" if verdict.status == "pass" else "fail"
        status = "timeout" if verdict.reason == "timeout" else status
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
    scores = _pass_at_k((v.task_id, v.status == "pass") for _, _, v in judged)
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
    tallies = [Tally(task_id, len(found), sum(found)) for task_id, found in by_task.items()]
    return {f"pass@{e.k}": e.value for e in scoring.estimates(tallies)}


def _write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def _write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return path


FORMATS: dict[str, Callable[[Path, list[Judged]], list[Path]]] = {
    "human-eval": _human_eval,
    "evalplus": _evalplus,
    "evalplus-folder": _evalplus_folder,
    "bigcodebench": _bigcodebench,
}
