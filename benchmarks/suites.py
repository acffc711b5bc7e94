"""Compare one suite of several benchmarks with one command per benchmark.

    python benchmarks/suites.py --model hf:FOLDER [--benchmarks humaneval humanevalplus mbppplus]
                                [--commands SOURCE] [--rounds 3]

Greedy, one model, every command a separate process, the two ways in turn. ``--commands`` names the
``src`` folder of another version for the single commands. Each way has its own cache folder. An
uncounted first round checks the reference solutions; completions and verdicts are made again in
every round.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from assay.datasets import cache_dir

SOURCE = Path(__file__).parents[1] / "src"
BENCHMARKS = ("humaneval", "humanevalplus", "mbppplus")
NOT_KEPT = ("completions", "verdicts")  # in the cache folder
INCOMPLETE = 3  # exit code if a reference cannot be judged on this machine


def run_all(commands: Iterable[list[str]], source: Path, folder: Path) -> float:
    """Return the seconds of all commands with this version. Exit if one of them fails."""
    cache, results = folder / "cache", folder / "results"
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in (*(cache / name for name in NOT_KEPT), results):
        shutil.rmtree(old, ignore_errors=True)
    path = os.pathsep.join([str(source.absolute()), os.environ.get("PYTHONPATH", "")])
    variables = {**os.environ, "PYTHONPATH": path, "ASSAY_CACHE_DIR": str(cache)}
    begun = time.perf_counter()
    for command in commands:
        whole = [sys.executable, "-m", "assay", "eval", *command, "--results-dir", str(results)]
        done = subprocess.run(whole, env=variables, capture_output=True, text=True)
        if done.returncode not in (0, INCOMPLETE):
            raise SystemExit(f"{' '.join(whole)}: exit code {done.returncode}\n{done.stderr}")
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--benchmarks", nargs="+", default=BENCHMARKS)
    parser.add_argument("--commands", type=Path, default=SOURCE)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    # A GPU cannot agree with a CPU about random weights, so nothing is checked there.
    settings = ["--model", asked.model, "--no-parity-gate"]
    ways = {
        "one suite": (SOURCE, [[*asked.benchmarks, *settings]]),
        "single commands": (asked.commands, [[name, *settings] for name in asked.benchmarks]),
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory(dir=cache_dir()) as folder:
        for number in range(asked.rounds + 1):
            for way, (source, commands) in ways.items():
                seconds = run_all(commands, source, Path(folder, way))
                print(f"{way}: {seconds:.1f} s{'' if number else ', not counted'}", flush=True)
                taken[way] += [seconds] if number else []
    suite, single = taken.values()
    ratios = [one / other for one, other in zip(single, suite, strict=True)]
    print(f"the suite is {statistics.median(ratios):.2f} times as fast")


if __name__ == "__main__":
    main()
