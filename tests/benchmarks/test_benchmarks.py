"""The benchmarks themselves: counts, references, helpers."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from assay import benchmarks
from assay.errors import DataError
from assay.sandbox import open_sandbox
from assay.types import Benchmark, Job, Program, Verdict


def test_humaneval_has_its_164_problems(humaneval: Benchmark) -> None:
    assert [p.task_id for p in humaneval.problems] == [f"HumanEval/{i}" for i in range(164)]


def test_mini_is_small_and_complete(mini: Benchmark) -> None:
    assert len(mini.problems) == 20
    assert len({p.tests.entry_point for p in mini.problems}) == 20


def judge_references(benchmark: Benchmark) -> list[Verdict]:
    """Return the verdicts of the references that do not pass."""
    jobs = (
        Job(p.task_id, 0, Program(p.reference, "reference"), p.tests, benchmark.limits)
        for p in benchmark.problems
    )
    sandbox = open_sandbox("process", 2)
    verdicts = list(sandbox.judge(jobs))
    sandbox.close()
    assert len(verdicts) == len(benchmark.problems)
    return [v for v in verdicts if v.status != "pass"]


@pytest.mark.parametrize("name", ["mini", "humaneval"])
def test_all_references_pass(name: str) -> None:
    assert judge_references(benchmarks.load(name)) == []


def test_the_prompts_helpers_are_there_for_the_tests(humaneval: Benchmark) -> None:
    """A chat answer holds the function alone; check() of these calls a helper of the prompt."""
    for number, helper in ((32, "def poly"), (38, "def encode_cyclic"), (50, "def encode_shift")):
        problem = humaneval.problems[number]
        assert helper in problem.tests.preamble
        assert f"def {problem.tests.entry_point}" not in problem.tests.preamble


def test_a_program_needs_no_import_that_the_prompt_has(humaneval: Benchmark) -> None:
    problem = humaneval.problems[0]
    alone = "def has_close_elements(numbers: List[float], threshold: float) -> bool:\n"
    body = problem.reference.removeprefix(problem.prompt)
    job = Job("t", 0, Program(alone + body, "x"), problem.tests, humaneval.limits)
    sandbox = open_sandbox("process", 1)
    (verdict,) = sandbox.judge([job])
    sandbox.close()
    assert verdict.status == "pass"


def test_a_damaged_data_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "humaneval" / "HumanEval.jsonl.gz"
    data.parent.mkdir()
    data.write_bytes(gzip.compress(b'{"task_id": "HumanEval/0"}\n'))
    monkeypatch.setenv("ASSAY_DATA_DIR", str(tmp_path))
    with pytest.raises(DataError, match="damaged or another version .*Replace it"):
        benchmarks.load("humaneval")
