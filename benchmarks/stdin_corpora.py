"""Judge known answers on the stdin problems of APPS-150 and CodeContests-165: 3,000 real cases.

    ASSAY_DATA_DIR=... python benchmarks/stdin_corpora.py [--workers 2]

Neither file has solutions. So this script writes two programs for every problem. One looks the
input up and prints the recorded output: it must pass all cases under every comparison, which shows
that inputs and outputs of all shapes arrive unchanged. The other prints something else in the last
case: it must fail there and nowhere before. ``fresh`` runs the first program in a fresh interpreter
per case, as a control, on every tenth problem.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from assay.data import text_cases
from assay.sandbox import open_sandbox
from assay.types import Job, Limits, Program, Tests

LIMITS = Limits(cpu_s=600.0, call_cpu_s=6.0, wall_s=900.0, memory_mb=4096, output_bytes=32 << 20)
COMPARISONS = ("livecodebench", "tolerant", "exact")
KNOWS = """\
import sys
KNOWN = {known!r}
sys.stdout.write(KNOWN[sys.stdin.read()])
"""
Pairs = list[tuple[str, str]]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "\n".join(map(str, value))


def read_apps(folder: Path) -> dict[str, Pairs]:
    lines = gzip.decompress((folder / "apps150.jsonl.gz").read_bytes()).splitlines()
    found = {}
    for record in map(json.loads, lines):
        if not record["starter_code"]:
            tests = record["test_list"]
            found[f"apps/{record['id']}"] = [(_text(t["input"]), _text(t["output"])) for t in tests]
    return found


def read_code_contests(folder: Path) -> dict[str, Pairs]:
    records = json.loads(gzip.decompress((folder / "code_contests.json.gz").read_bytes()))
    return {
        f"code_contests/{number}": list(
            zip(record["tests"]["inputs"], record["tests"]["outputs"], strict=True)
        )
        for number, record in enumerate(records)
    }


def usable(pairs: Pairs) -> Pairs:
    """Return the cases with different inputs: an input with two outputs has no right program."""
    known = dict(pairs)
    return [(given, known[given]) for given in known if known[given].strip()]


def job(name: str, number: int, pairs: Pairs, program: str, comparison: str) -> Job:
    cases = text_cases.pack(pairs, comparison=comparison)
    tests = Tests("", "", integrity="separated", texts=cases)
    return Job(name, number, Program(program, "x"), tests, LIMITS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    folder = Path(os.environ["ASSAY_DATA_DIR"], "stdin-judge")
    problems = {**read_apps(folder), **read_code_contests(folder)}
    problems = {name: pairs for name, found in problems.items() if (pairs := usable(found))}
    print(f"{len(problems)} problems, {sum(map(len, problems.values()))} cases")
    jobs = []
    for name, pairs in problems.items():
        wrong = {**dict(pairs), pairs[-1][0]: "-1 something else\n"}
        right = KNOWS.format(known=dict(pairs))
        jobs += [job(name, n, pairs, right, c) for n, c in enumerate(COMPARISONS)]
        jobs.append(job(name, len(COMPARISONS), pairs, KNOWS.format(known=wrong), "livecodebench"))
    sandbox = open_sandbox("process", options.workers)
    started, cases = time.monotonic(), 0
    surprises = []
    for verdict in sandbox.judge(jobs):
        count = len(problems[verdict.task_id])
        right, of = verdict.groups.get("cases", (-1, -1))
        cases += right
        is_right_program = verdict.sample < len(COMPARISONS)
        expected = ("pass", count, count) if is_right_program else ("fail", count - 1, count)
        if (verdict.status, right, of) != expected:
            surprises.append(verdict)
    elapsed = time.monotonic() - started
    sandbox.close()
    print(f"{len(jobs)} programs, {cases} cases right, {elapsed:.0f} s, {cases / elapsed:.0f}/s")
    print(f"surprises: {len(surprises)}")
    for verdict in surprises:
        print(" ", verdict)
    control = [pairs for number, pairs in enumerate(problems.values()) if number % 10 == 0]
    agree = sum(runs_fresh(pairs) for pairs in control)
    print(f"fresh interpreter agrees on {agree} of {len(control)} problems")


def runs_fresh(pairs: Pairs) -> bool:
    """Return whether the right program prints the recorded outputs in fresh interpreters."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.py")
        path.write_text(KNOWS.format(known=dict(pairs)))
        for given, expected in pairs[:5]:
            found = subprocess.run(
                [sys.executable, "-I", str(path)], input=given.encode(), capture_output=True
            )
            if found.stdout.decode() != expected:
                return False
    return True


if __name__ == "__main__":
    main()
