"""Judge jobs in a tier of the process sandbox, in a harness process of its own."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import pytest

from assay.types import Cases, Integrity, Job, Limits, Program, Tests, Verdict

NAMES = ("root", "user", "landlock")
# The tier that whoever runs the tests gets; the others only in the full run.
STRONGEST = "root" if os.geteuid() == 0 else "user"
TIERS = [pytest.param(name, marks=() if name == STRONGEST else pytest.mark.slow) for name in NAMES]
# For tests that take long: one tier in the full run, the others beside the whole data sets.
COSTLY_TIERS = [
    pytest.param(name, marks=pytest.mark.slow if name == STRONGEST else pytest.mark.whole)
    for name in NAMES
]
ORDINARY_UID = 54321
SYSTEM_PYTHON = "/usr/bin/python3"
SOURCE = Path(__file__).parents[2] / "src"
LIMITS = Limits(cpu_s=4, wall_s=10)

HARNESS = """
import json, sys
from dataclasses import asdict
from assay.judging.answers import judge_jobs
from assay.sandbox import open_sandbox
from assay.types import Answer, Cases, Job, Limits, Program, Tests, TextCases

LINES = sys.stdin.readlines()

def build(data):
    tests = data["tests"]
    cases, texts, answer = tests.pop("cases"), tests.pop("texts"), tests.pop("answer")
    if texts:
        texts["packed"] = tuple(part.encode("latin-1") for part in texts["packed"])
        texts = TextCases(**texts)
    answer = answer and Answer(**answer)
    tests = Tests(**tests, cases=cases and Cases(**cases), texts=texts, answer=answer)
    program = Program(**data["program"])
    return Job(data["task_id"], data["sample"], program, tests, Limits(**data["limits"]))

def main():
    tier, workers, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    sandbox = open_sandbox("process", workers, "auto" if how == "auto" else tier)
    assert sandbox.capabilities().tier == tier, sandbox.capabilities().tier
    for line in LINES:
        step = json.loads(line)
        jobs = list(map(build, step["jobs"]))
        if step["kind"] == "judge":
            verdicts = list(judge_jobs(sandbox, jobs))
        else:
            verdicts = [verdict for verdict, _ in sandbox.outputs(jobs)]
        print(json.dumps(list(map(asdict, verdicts))), flush=True)
    sandbox.close()
"""


@dataclass(frozen=True, slots=True)
class Step:
    """Jobs that are judged together, or references whose outputs are computed."""

    jobs: Sequence[Job]
    kind: Literal["judge", "outputs"] = "judge"


def job(
    name: str,
    code: str,
    tests: str = "assert f() == 1",
    integrity: Integrity = "separated",
    *,
    entry_point: str = "f",
    preamble: str = "",
    cases: Cases | None = None,
    limits: Limits = LIMITS,
    sample: int = 0,
) -> Job:
    """Return a job with limits that suit attacks."""
    return Job(
        name, sample, Program(code, "x"), Tests(entry_point, tests, preamble, integrity, cases),
        limits,
    )  # fmt: skip


def judge_in(
    tier: str,
    steps: Sequence[Step],
    *,
    workers: int = 1,
    before: str = "",
    auto: bool = False,
    timeout_s: float = 240,
) -> list[Verdict]:
    """Return all verdicts, step by step; skip the test where the machine cannot offer the tier.

    ``before`` is code that runs in the harness first. ``auto`` asks for no tier and expects this
    one. Each step's verdicts come in the order in which they were reached.
    """
    as_root = os.geteuid() == 0
    if tier == "root" and not as_root:
        pytest.skip("the root tier needs root")
    uid = ORDINARY_UID if as_root and tier != "root" else None
    if uid and not Path(SYSTEM_PYTHON).exists():
        pytest.skip(f"an ordinary user needs {SYSTEM_PYTHON}")
    command = [SYSTEM_PYTHON if uid else sys.executable, "-c", f"{HARNESS}\n{before}\nmain()"]
    done = subprocess.run(
        [*command, tier, str(workers), "auto" if auto else "tier"],
        input=encode_steps(steps),
        env={"PYTHONPATH": str(readable_source()), "PATH": os.environ["PATH"]},
        cwd="/",
        user=uid,
        group=uid,
        extra_groups=[] if uid else None,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stderr
    return [Verdict(**data) for line in done.stdout.splitlines() for data in json.loads(line)]


def assert_all_failed(verdicts: Sequence[Verdict]) -> None:
    """Fail with a list of all that passed, and of all that left the score as invalid."""
    lines = [
        f"{v.task_id}: {v.status} {v.reason} {v.detail}" for v in verdicts if v.status != "fail"
    ]
    assert not lines, f"{len(lines)} of {len(verdicts)}:\n" + "\n".join(lines)


def encode_steps(steps: Sequence[Step]) -> str:
    """Return the steps as the harness reads them."""
    lines = [{"kind": step.kind, "jobs": list(map(asdict, step.jobs))} for step in steps]
    # Packed cases are bytes.
    return "".join(json.dumps(line, default=lambda b: b.decode("latin-1")) + "\n" for line in lines)


@functools.cache
def readable_source() -> Path:
    """Copy the package to where every user can read it; it is removed with the process."""
    folder = Path(tempfile.mkdtemp(prefix="assay-source-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(SOURCE / "assay", folder / "assay")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    return folder
