"""Measure how fast CRUXEval's answers are judged, and compare recorded verdicts.

    python benchmarks/cruxeval.py

Every recorded answer in ``$ASSAY_DATA_DIR/recorded`` is judged: outputs by parsing them, inputs in
the sandbox. The speed of outputs is given for one core's CPU time, for the judge of the Python API,
and for ``assay score`` from the file to the result, with extraction and a run folder.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import assay
from assay import benchmarks
from assay.judging.answers import decide
from assay.pipeline import ScoreConfig, score
from assay.progress import Silent
from assay.types import Job, Program

RECORDED = (
    ("cruxeval-codellama7b", "scored_output", "cruxeval-o"),
    ("cruxeval-qwen25coder-1.5b", "output-cot-scored", "cruxeval-o"),
    ("cruxeval-codellama7b", "scored_input", "cruxeval-i"),
    ("cruxeval-qwen25coder-1.5b", "input-cot-scored", "cruxeval-i"),
)
ROUNDS = 5


class Recorded(NamedTuple):
    task_id: str
    answer: str
    passed: bool


def read(folder: Path, name: str) -> list[Recorded]:
    """Return the recorded answers with their verdicts."""
    found = json.loads(gzip.decompress((folder / f"{name}.json.gz").read_bytes()))
    answers, verdicts = found["raw_generations"], found["raw_scored_generations"]
    return [
        Recorded(task.replace("sample_", "CRUXEval/"), answer, passed)
        for task in answers
        for answer, passed in zip(answers[task], verdicts[task], strict=True)
    ]


def compare(recorded: list[Recorded], name: str) -> tuple[float, list[Recorded]]:
    """Return the seconds to judge all answers, and those whose verdict is another one."""
    with assay.Judge(name) as judge:
        started = time.perf_counter()
        verdicts = judge.judge([(one.task_id, one.answer) for one in recorded])
        seconds = time.perf_counter() - started
    pairs = zip(recorded, verdicts, strict=True)
    return seconds, [one for one, v in pairs if (v.status == "pass") != one.passed]


def best_per_cpu_second(recorded: list[Recorded]) -> float:
    """Return how many outputs are judged in a second of CPU time, in the best of some rounds."""
    tests = {p.task_id: p.tests for p in benchmarks.load("cruxeval-o").problems}
    jobs = [Job(t, n, Program(a, ""), tests[t]) for n, (t, a, _) in enumerate(recorded)]
    best = 0.0
    for _ in range(ROUNDS):
        started = time.process_time()
        for job in jobs:
            decide(job)
        best = max(best, len(jobs) / (time.process_time() - started))
    return best


def time_score(recorded: list[Recorded]) -> float:
    """Return the seconds of ``assay score`` on all answers."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "answers.jsonl")
        lines = (json.dumps({"task_id": t, "completion": a}) for t, a, _ in recorded)
        file.write_text("\n".join(lines))
        config = ScoreConfig(
            "cruxeval-o", results_dir=Path(folder), samples_file=str(file), no_cache=True
        )
        started = time.perf_counter()
        score(config, Silent())
        return time.perf_counter() - started


def main() -> None:
    data = Path(os.environ["ASSAY_DATA_DIR"], "recorded")
    for folder, file, name in RECORDED:
        recorded = read(data / folder, file)
        seconds, differing = compare(recorded, name)
        print(
            f"{name} {folder}: {len(recorded)} answers in {seconds:.1f} s "
            f"({len(recorded) / seconds:,.0f}/s), {len(differing)} verdicts differ "
            f"{[one.task_id for one in differing]}"
        )
        if file == "scored_output":
            print(f"  parsed and compared: {best_per_cpu_second(recorded):,.0f} per CPU second")
            print(f"  assay score: {len(recorded) / time_score(recorded):,.0f}/s")


if __name__ == "__main__":
    main()
