"""BigCodeBench: counts, prompts, calibration, verdicts in its own environment."""

from __future__ import annotations

import ast
import dataclasses
import gzip
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay import benchmarks
from assay.errors import DataError, SandboxError
from assay.prompts import strategies
from assay.sandbox import Sandbox, open_sandbox
from assay.sandbox.environments import store as environments
from assay.types import Benchmark, Job, Problem, Program, Verdict
from tests.conftest import Cli, write_completions

# A reference of each kind that an isolated place could break.
DELICATE = {
    21: "psutil reads the machine's figures",
    82: "a Flask app, and __file__",
    177: "NLTK's stop words",
    205: "processes of its own, found by psutil",
    274: "smtplib, mocked",
    363: "a pool of processes",
    418: "TensorFlow, with its threads",
    593: "patches names of its own module",
    1038: "a server on localhost",
    1109: "NLTK's tokenizer",
}


@pytest.fixture(scope="module")
def full(_environment: None) -> Benchmark:
    return loaded("bigcodebench")


def loaded(name: str) -> Benchmark:
    try:
        return benchmarks.load(name)
    except DataError as error:
        pytest.skip(f"needs BigCodeBench's data: {error}")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    try:
        environments.find("bigcodebench")
    except SandboxError as error:
        pytest.skip(str(error))
    opened = open_sandbox("process", 2)
    yield opened
    opened.close()


def judged(sandbox: Sandbox, benchmark: Benchmark, programs: dict[str, str]) -> dict[str, Verdict]:
    problems = {p.task_id: p for p in benchmark.problems}
    jobs = [
        Job(
            task_id, 0, Program(code, "x"), problems[task_id].tests, benchmark.limits,
            benchmark.imports, benchmark.environment,
        )
        for task_id, code in programs.items()
    ]  # fmt: skip
    return {verdict.task_id: verdict for verdict in sandbox.judge(jobs)}


def task(benchmark: Benchmark, number: int) -> Problem:
    return next(p for p in benchmark.problems if p.task_id == f"BigCodeBench/{number}")


def test_the_two_sets_have_their_sizes_and_the_hard_one_is_a_part(full: Benchmark) -> None:
    hard = loaded("bigcodebench-hard")
    assert (len(full.problems), len(hard.problems)) == (1140, 148)
    by_id = {problem.task_id: problem for problem in full.problems}
    assert all(by_id[problem.task_id] == problem for problem in hard.problems)


def test_complete_is_what_the_short_name_means(full: Benchmark) -> None:
    assert full == loaded("bigcodebench-complete")
    assert full.name == "bigcodebench-complete"


def test_only_the_prompt_differs_between_the_two_kinds(full: Benchmark) -> None:
    instruct = loaded("bigcodebench-instruct")
    for ours, theirs in zip(full.problems, instruct.problems, strict=True):
        assert ours.prompt != theirs.prompt
        assert ours == dataclasses.replace(theirs, prompt=ours.prompt)


def test_instructions_are_sent_as_they_are(full: Benchmark) -> None:
    build = strategies.get("standard").build
    for problem in loaded("bigcodebench-instruct").problems:
        (message,) = build(problem, "chat").messages
        assert message.content == problem.prompt.strip()
    for problem in full.problems:
        (message,) = build(problem, "chat").messages
        assert message.content.startswith("Complete the following Python function")


@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_the_prompts_imports_and_constants_stand_before_every_program(full: Benchmark) -> None:
    for problem in full.problems:
        compile(problem.tests.preamble, problem.task_id, "exec")
        assert problem.tests.preamble.endswith("\n    pass\n")
    assert "VEHICLE_TYPES =" in task(full, 593).tests.preamble


def test_a_damaged_data_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "bigcodebench" / "BigCodeBench-v0.1.4.jsonl.gz"
    data.parent.mkdir()
    data.write_bytes(gzip.compress(b'{"task_id": "BigCodeBench/0"}\n'))
    monkeypatch.setenv("ASSAY_DATA_DIR", str(tmp_path))
    with pytest.raises(DataError, match="damaged or another version"):
        benchmarks.load("bigcodebench")


@pytest.mark.slow
def test_delicate_references_pass(sandbox: Sandbox, full: Benchmark) -> None:
    wanted = {task(full, number).task_id: task(full, number).reference for number in DELICATE}
    verdicts = judged(sandbox, full, wanted)
    assert [v for v in verdicts.values() if v.status != "pass"] == []


@pytest.mark.slow
def test_a_wrong_program_names_the_failing_test(sandbox: Sandbox, full: Benchmark) -> None:
    programs = {
        "BigCodeBench/0": "def task_func(numbers=[1, 2]):\n    return 'x'\n",
        "BigCodeBench/1": "def task_func(*a):\n    return {}['missing']\n",
        "BigCodeBench/2": "def task_func(*a):\n    raise SystemExit(0)\n",
        "BigCodeBench/3": "x = 1\n",
        "BigCodeBench/4": "import unittest\ndef task_func(*a):\n    raise unittest.SkipTest\n",
    }
    verdicts = judged(sandbox, full, programs)
    assert all(v.status == "fail" and v.integrity == "shared" for v in verdicts.values())
    wrong = verdicts["BigCodeBench/0"]
    assert wrong.reason == "wrong-answer"
    assert "'x' is not an instance of <class 'float'>; in test_" in wrong.detail
    assert wrong.failing_test == "self.assertIsInstance(result, float)"
    raised = verdicts["BigCodeBench/1"]
    assert raised.reason == "exception"
    assert "KeyError: 'missing' (line 2 of the program); in test_" in raised.detail
    assert verdicts["BigCodeBench/2"].reason == "exit"
    assert "the program skipped the test" in verdicts["BigCodeBench/4"].detail
    # The calibrated stub is there: it returns None instead of being missing.
    assert "NameError" not in verdicts["BigCodeBench/3"].detail


@pytest.mark.slow
def test_a_program_may_leave_imports_to_the_prompt(sandbox: Sandbox, full: Benchmark) -> None:
    problem = task(full, 4)
    alone = problem.reference[problem.reference.index("def task_func") :]
    assert judged(sandbox, full, {problem.task_id: alone})[problem.task_id].status == "pass"


@pytest.mark.slow
def test_chance_is_the_same_every_time(sandbox: Sandbox, full: Benchmark) -> None:
    """Tests of some tasks leave the seed open; a verdict must not depend on it."""
    code = "import random, numpy\nraise ValueError(f'{random.random()} {numpy.random.rand()}')"
    details = {
        judged(sandbox, full, {problem.task_id: code})[problem.task_id].detail
        for problem in full.problems[:6]
    }
    assert len({" ".join(detail.split()[:3]) for detail in details}) == 1


def test_a_missing_environment_is_told_before_anything_is_generated(
    assay: Cli, full: Benchmark, tmp_path: Path
) -> None:
    samples = write_completions(tmp_path / "s.jsonl", [(full.problems[0].task_id, "x = 1")])
    cache = {"ASSAY_CACHE_DIR": "/var/tmp/assay-no-environments"}
    for arguments in (
        ("eval", "bigcodebench-hard"),
        ("score", samples, "--benchmark", "bigcodebench"),
    ):
        done = assay(*arguments, env=cache)
        assert done.returncode == 2
        assert done.stderr.strip().endswith(
            "environment 'bigcodebench': missing. Run 'assay env bigcodebench'."
        )
    assert not (tmp_path / "results").exists()


CLOCKS = {"time", "perf_counter", "monotonic", "now"}


def reads_clock(node: ast.AST) -> bool:
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return is_call and node.func.attr in CLOCKS and not node.args  # type: ignore[attr-defined]


def measures_time(code: str) -> bool:
    """Report whether test code takes the difference of two readings of a clock."""
    with warnings.catch_warnings(action="ignore"):  # some strings have unknown escapes
        nodes = list(ast.walk(ast.parse(code)))
    read = {
        name.id
        for node in nodes
        if isinstance(node, ast.Assign) and any(map(reads_clock, ast.walk(node.value)))
        for target in node.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    }
    differences = (n for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub))
    return any(
        reads_clock(part) or (isinstance(part, ast.Name) and part.id in read)
        for difference in differences
        for part in ast.walk(difference)
    )


def test_the_tasks_whose_tests_measure_time_are_known(full: Benchmark) -> None:
    found = {p.task_id for p in full.problems if measures_time(p.tests.code)}
    days = {f"BigCodeBench/{number}" for number in (263, 489, 491, 492)}  # of files or logs
    assert found - days == full.timed
