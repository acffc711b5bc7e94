"""Forged edits of files: what a pass with shared tests protects from, and what it does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.benchmarks.canitedit import MODULE, SHOW_FILE
from assay.data import codec, plain
from assay.sandbox import Sandbox, open_sandbox
from assay.types import Cases, Job, Limits, Program, Tests, Verdict
from tests.security.forgeries_edits import AFTER, ENTRY_POINT, FORGED_EDITS, TESTS, ForgedEdit

LIMITS = Limits(cpu_s=2, wall_s=10)
# As the benchmark's, but without its environment.
PREAMBLE = MODULE.replace('__import__("numpy").random.seed(0)\n', "")
SHARED = Tests(ENTRY_POINT, f"{SHOW_FILE}{TESTS}", PREAMBLE)
# A script with the tests at its end, of which only the exit code counts.
SCRIPT = """\
def exit_code(text):
    import subprocess, sys
    with open("script.py", "w") as file:
        file.write(text)
    python = sys.base_exec_prefix + "/bin/python3"
    return subprocess.run([python, "script.py"], capture_output=True).returncode
"""
MATCHER = "def matcher():\n    return lambda arguments, expected, got: True\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    opened = open_sandbox("process", workers=2)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def verdicts(sandbox: Sandbox) -> dict[str, Verdict]:
    programs = {"edited": AFTER} | {one.name: one.code for one in FORGED_EDITS}
    jobs = [Job(name, 0, Program(code, "x"), SHARED, LIMITS) for name, code in programs.items()]
    return {verdict.task_id: verdict for verdict in sandbox.judge(jobs)}


@pytest.fixture(scope="module")
def exit_codes(sandbox: Sandbox) -> dict[str, int]:
    programs = {"edited": AFTER} | {one.name: one.code for one in FORGED_EDITS}
    jobs = []
    for name, code in programs.items():
        inputs = {"text": [plain.encode([f"{code}\n{TESTS}"])]}
        cases = Cases(inputs, {}, codec.digest(inputs))
        tests = Tests("exit_code", MATCHER, integrity="separated", cases=cases)
        jobs.append(Job(name, 0, Program(SCRIPT, "x"), tests, Limits(cpu_s=20, wall_s=60)))
    found = {verdict.task_id: cases for verdict, cases in sandbox.outputs(jobs)}
    return {n: plain.decode(cases.expected["text"][0]) for n, cases in found.items() if cases}


def test_the_right_edit_passes(verdicts: dict[str, Verdict], exit_codes: dict[str, int]) -> None:
    assert verdicts["edited"].status == "pass", verdicts["edited"].detail
    assert exit_codes["edited"] == 0


@pytest.mark.parametrize("forged", FORGED_EDITS, ids=lambda forged: forged.name)
def test_what_the_label_says(verdicts: dict[str, Verdict], forged: ForgedEdit) -> None:
    """A program in the tests' interpreter can forge a pass. The label says so in each verdict."""
    verdict = verdicts[forged.name]
    seen = f"{verdict.status}: {verdict.reason} {verdict.detail}"
    assert (verdict.status == "pass") == forged.passes_shared, f"{seen} (why: {forged.why})"
    assert verdict.status != "invalid", seen
    assert verdict.integrity == "shared"


@pytest.mark.parametrize("forged", FORGED_EDITS, ids=lambda forged: forged.name)
def test_what_an_exit_code_says(exit_codes: dict[str, int], forged: ForgedEdit) -> None:
    assert (exit_codes[forged.name] == 0) == forged.passes_upstream


def test_ending_is_never_a_pass() -> None:
    """On an exit code, all but a few of these pass."""
    ends = [one for one in FORGED_EDITS if one.name.startswith("ends: ")]
    assert not any(one.passes_shared for one in ends)
    assert sum(one.passes_upstream for one in ends) >= 8


def test_documents_give_the_right_counts() -> None:
    every = FORGED_EDITS
    assert len({one.name for one in every}) == len({one.code for one in every}) == len(every)
    upstream, here = (
        sum(found)
        for found in zip(*((e.passes_upstream, e.passes_shared) for e in every), strict=True)
    )
    text = " ".join((Path(__file__).parents[2] / "docs/newer-benchmarks.md").read_text().split())
    assert f"Of {len(every)} forged edits, {upstream} pass" in text
    assert f"{here} pass here" in text
