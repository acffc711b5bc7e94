"""``assay benchmark check``: what it finds, what it does not, and its exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import assay
from assay import benchmarks
from assay.data import text_cases
from assay.pipeline.benchmark_check import (
    KINDS,
    BenchmarkCheck,
    count_shown_cases,
    gives_reference,
    list_prompts,
    none_program,
)
from assay.types import Answer, Message, Problem, Prompt, Strategy, Tests
from tests.conftest import Cli

SUM = "Write a function total(numbers) that returns the sum of a list of numbers."
REFERENCE = "def total(numbers):\n    result = 0\n    for one in numbers:\n        result += one\n    return result\n"  # noqa: E501
GOOD: dict[str, Any] = {
    "task_id": "good",
    "prompt": SUM,
    "entry_point": "total",
    "cases": [{"args": [[1, 2]], "expected": 3}],
    "reference": REFERENCE,
}
FLAKY = "import time\nassert total([1, 2]) == 3\nassert time.time_ns() // 1000 % 2\n"
BY_TASK: dict[str, dict[str, Any]] = {
    "wrong": {"prompt": "1 " + SUM, "reference": "def total(numbers):\n    return 0\n"},
    "flaky": {"prompt": "2 " + SUM, "tests": FLAKY},
    "empty": {"prompt": "3 " + SUM, "tests": "same = lambda: True\nassert same()\n"},
    "uncalled": {"prompt": "3a " + SUM, "tests": "assert True\n"},
    "none": {"prompt": "4 " + SUM, "tests": "assert not total([])\n"},
    "twin": {"prompt": SUM.replace(" ", "\n ")},
    "cousin": {"prompt": SUM, "cases": [{"args": [[5]], "expected": 5}]},
    "told": {"prompt": f"5 {SUM} For example:\n\n    {REFERENCE}"},
    "shown": {"prompt": f"6 {SUM}\n>>> total([1,2])\n3\n"},
    "unnamed": {"prompt": "Write a function that adds numbers."},
}
EXPECTED = {
    ("error", "reference-fails", "wrong"),
    ("error", "flaky", "flaky"),
    ("error", "passes-empty", "empty"),
    ("error", "passes-none", "empty"),
    ("error", "passes-none", "none"),
    ("error", "reference-fails", "uncalled"),
    ("error", "not-judged", "uncalled"),
    ("error", "duplicate", "twin"),
    ("error", "reference-in-prompt", "told"),
    ("warning", "same-prompt", "cousin"),
    ("warning", "cases-in-prompt", "shown"),
    ("warning", "unnamed-entry-point", "unnamed"),
}


def write(folder: Path, *problems: dict[str, Any]) -> Path:
    path = folder / "mine.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in problems))
    return path


def problem(task_id: str) -> dict[str, Any]:
    changes = BY_TASK[task_id]
    kept = {
        key: value for key, value in GOOD.items() if not (key == "cases" and "tests" in changes)
    }
    return {**kept, "task_id": task_id, **changes}


def triples(found: BenchmarkCheck) -> set[tuple[str, str, str]]:
    return {(one.severity, one.kind, one.task_id) for one in found.findings}


def test_everything_that_is_wrong_is_found(assay: Cli, tmp_path: Path) -> None:
    path = write(tmp_path, GOOD, *map(problem, BY_TASK))
    done = assay("benchmark", "check", path, "--json", "--repeat", "12", "--workers", "1")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    listed = {(one["severity"], one["kind"], one["task_id"]) for one in found["findings"]}
    assert listed == EXPECTED
    assert (found["errors"], found["warnings"]) == (9, 3)
    assert (found["problems"], found["references"], found["references_passed"]) == (11, 11, 8)
    flaky = next(one for one in found["findings"] if one["kind"] == "flaky")
    assert "of 12 times; wrong-answer" in flaky["detail"]


def test_a_good_benchmark_has_no_findings(assay: Cli, tmp_path: Path) -> None:
    done = assay("benchmark", "check", write(tmp_path, GOOD), "--workers", "1")
    assert done.returncode == 0
    assert "references  1 of 1 pass, judged 3 times" in done.stdout
    assert "tests       1 in a separate process, 0 in the program's interpreter" in done.stdout
    assert "0 errors, 0 warnings" in done.stdout


def test_warnings_alone_are_not_a_failure(assay: Cli, tmp_path: Path) -> None:
    path = write(tmp_path, problem("shown"))
    done = assay("benchmark", "check", path, "--repeat", "1", "--workers", "1")
    assert done.returncode == 0
    assert "warning  cases-in-prompt  shown" in done.stdout
    assert "1 warning" in done.stdout


def test_built_in_benchmarks_are_checked_by_name() -> None:
    found = assay.check_benchmark("mini", repeat=1, problems="4", workers=1)
    assert triples(found) == set()
    assert (found.benchmark, found.problems, found.references_passed) == ("mini", 4, 4)


def test_many_findings_are_counted_in_the_table(assay: Cli, tmp_path: Path) -> None:
    many = [
        {"task_id": f"t{n}", "prompt": f"{n} adds.", "entry_point": "f", "tests": "assert f(1)"}
        for n in range(25)
    ]
    done = assay("benchmark", "check", write(tmp_path, *many), "--workers", "1")
    assert "5 more, which --json lists" in done.stdout
    assert "25 warnings" in done.stdout


def test_problems_without_a_reference_are_counted(tmp_path: Path) -> None:
    without = {key: value for key, value in GOOD.items() if key != "reference"}
    found = assay.check_benchmark(write(tmp_path, without), repeat=2, workers=1)
    assert (found.references, found.references_passed, found.findings) == (0, 0, ())


def test_a_bad_number_of_rounds_is_refused(assay: Cli, tmp_path: Path) -> None:
    done = assay("benchmark", "check", write(tmp_path, GOOD), "--repeat", "0")
    assert (done.returncode, "--repeat 0: must be at least 1" in done.stderr) == (2, True)


def own_problem(folder: Path, **changes: Any) -> Problem:
    return benchmarks.load(str(write(folder, {**GOOD, **changes}))).problems[0]


BODY = "result = 0\n  for one in numbers:\n  # add\n  result += one\nreturn result"


@pytest.mark.parametrize(
    ("prompt", "leaks"),
    [
        (SUM, False),
        (f"{SUM}\n{REFERENCE}", True),
        (f"{SUM}\n{BODY}", True),
        (f"{SUM}\n{BODY.replace('result = 0', '>>> result = 0')}", True),
        (f"{SUM}\nresult = 0\nreturn result", False),
        ("def total(numbers):\n    '''Return the sum of numbers.'''\n", False),
    ],
)  # fmt: skip
def test_the_body_of_the_reference_must_not_be_in_the_prompt(
    prompt: str, leaks: bool, tmp_path: Path
) -> None:
    assert gives_reference(own_problem(tmp_path, prompt=prompt), prompt) is leaks


def test_short_bodies_are_not_leaks(tmp_path: Path) -> None:
    short = "def total(numbers):\n    return numbers\n"
    found = own_problem(tmp_path, prompt=f"{SUM}\nreturn numbers\n", reference=short)
    assert not gives_reference(found, found.prompt)


@pytest.mark.parametrize(
    ("shown", "tests", "count"),
    [
        ("total([1,2]) == 3", "assert total([1, 2]) == 3", 1),
        ("total([1,2]) is 3", "assert total([1, 2]) == 3\nassert total([]) == 0", 0),
        ("total([1,2]) is 3", "def check(candidate):\n    assert candidate([1, 2]) == 3", 1),
        ("total([1,2]) is 3", "assert abs(total([1, 2]) - 3) < 1", 0),
        ("total([1,2]) is 4", "assert total([1, 2]) == 3", 0),
        ('total(["a"]) is "b"', "assert total(['a']) == 'b'", 1),
        ("total([1]) is 1", f"assert total([1]) == 1{' + 0' * 900}", 0),  # too long to unparse
    ],
)
def test_cases_in_the_prompt_count_if_they_are_all(
    shown: str, tests: str, count: int, tmp_path: Path
) -> None:
    changes = {"prompt": f"{SUM} {shown}", "tests": tests}
    values = {key: value for key, value in GOOD.items() if key != "cases"}
    found = benchmarks.load(str(write(tmp_path, {**values, **changes}))).problems[0]
    assert count_shown_cases(found, found.prompt) == count


def test_inputs_in_the_prompt_count_if_they_are_all() -> None:
    prompt = "Add.\nInput:\n1 2\n\nOutput:\n3\n"
    for pairs, count in (([("1 2\n", "3\n")], 1), ([("1 2\n", "3\n"), ("4 5\n", "9\n")], 0)):
        tests = Tests("", "", integrity="separated", texts=text_cases.pack(pairs))
        assert count_shown_cases(Problem("a", prompt, "", tests), prompt) == count


def test_prompts_are_those_that_a_model_is_sent(tmp_path: Path) -> None:
    benchmark = benchmarks.load(str(write(tmp_path, GOOD)))
    own = Strategy("standard", 1, lambda *_: Prompt(messages=(Message("user", "Add them."),)))
    changed = replace(benchmark, strategies={"standard": own})
    assert [prompt for _, prompt in list_prompts(benchmark)] == [SUM]
    assert [prompt for _, prompt in list_prompts(changed)] == ["Add them."]


def test_the_program_that_returns_none_fits_the_tests() -> None:
    assert none_program(Tests("f", "")) == "def f(*args, **kwargs):\n    return None\n"
    assert (none_program(Tests("Solution", "", adapter="x")) or "").startswith("class Solution:")
    assert none_program(Tests("", "", texts=text_cases.pack([("", "a")]))) is None
    assert none_program(Tests("f", "", answer=Answer("literal"))) is None


def test_the_guide_lists_every_kind_of_finding() -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "own-benchmark.md"
    rows = [line.split("|") for line in guide.read_text().splitlines() if line.startswith("| `")]
    listed = {row[1].strip(" `"): row[2].strip() for row in rows}
    assert {kind: listed.get(kind) for kind in KINDS} == {k: s for k, (s, _) in KINDS.items()}
