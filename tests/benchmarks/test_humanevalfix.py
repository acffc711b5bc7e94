"""HumanEvalFix: references pass, programs with their bugs fail, scores by type of bug."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import assay
from assay import benchmarks
from assay.benchmarks.humanevalfix import read_buggy_programs
from assay.extract import extract
from assay.prompts import find_strategy, list_strategies
from tests.conftest import Cli, write_completions

slow, whole = pytest.mark.slow, pytest.mark.whole
NAMES = ("humanevalfix-tests", "humanevalfix-docs")
BUGS = {
    "value misuse": 44, "missing logic": 33, "excess logic": 31, "operator misuse": 25,
    "variable misuse": 23, "function misuse": 8,
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=m) for n, m in zip(NAMES, (slow, whole), strict=True)]
)
def test_references_pass_and_buggy_programs_fail(name: str) -> None:
    found = benchmarks.load(name)
    buggy = read_buggy_programs()
    with assay.Judge(found) as judge:
        assert judge.unscorable == {}
        right = judge.judge([(p.task_id, p.reference) for p in found.problems])
        wrong = judge.judge(buggy)
    assert [v.task_id for v in right if v.status != "pass"] == []
    assert [v.task_id for v in wrong if v.status != "fail"] == []
    assert len(right) == len(wrong) == 164
    assert {v.integrity for v in (*right, *wrong)} == {"separated"}


@pytest.mark.parametrize("name", NAMES)
def test_problems_have_their_origin_and_labels(name: str) -> None:
    problems = benchmarks.load(name).problems
    assert Counter(p.labels["bug type"] for p in problems) == BUGS
    assert [p.cluster for p in problems] == [f"HumanEval/{n}" for n in range(164)]
    assert {p.date for p in problems} == {"2023-08-14"}
    assert [p.tests for p in benchmarks.load("humanevalfix").problems] == [
        p.tests for p in problems
    ]


def test_upstreams_prompts() -> None:
    """As bigcode-evaluation-harness builds them (humanevalpack.py, prompt ``instruct``)."""
    tests, docs = map(benchmarks.load, NAMES)
    assert list_strategies(tests) == ["standard", "scot", "upstream"]
    first = tests.problems[0]
    text = find_strategy("upstream", tests).build(first, "text")
    assert text.text.startswith("from typing import List\n\n\ndef has_close_elements(")
    assert "distance = elem - elem2" in text.text
    assert "check(has_close_elements)\nFix bugs in has_close_elements.\n\nfrom typing" in text.text
    assert text.text.endswith(
        "def has_close_elements(numbers: List[float], threshold: float) -> bool:"
    )
    assert text.stop == ("\nclass", "\ndef", "\n#", "\n@", "\nprint", "\nif", "\nassert")
    other = find_strategy("upstream", docs).build(docs.problems[0], "text").text
    assert "assert" not in other
    assert other.count("Check if in given list of numbers") == 2
    chat = find_strategy("upstream", docs).build(docs.problems[0], "chat").messages
    assert [m.role for m in chat] == ["user"]
    assert chat[0].content.endswith("return False\n\nFix bugs in has_close_elements.")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("strategy", ["standard", "scot"])
def test_our_prompts_show_the_bug_and_hide_the_fix(name: str, strategy: str) -> None:
    found = benchmarks.load(name)
    build = find_strategy(strategy, found).build
    asked = build(found.problems[0], "chat").messages[0].content
    assert "distance = elem - elem2" in asked
    assert "abs(" not in asked
    assert ("assert " in asked) == (name == "humanevalfix-tests")


def test_continuations_and_answers_become_programs() -> None:
    (problem,) = (p for p in benchmarks.load("humanevalfix").problems if p.task_id == "Python/0")
    body = "\n    return sorted(numbers) == threshold\n"
    continued = extract(body, problem, "text")
    assert continued.code == problem.prompt.rstrip() + body or continued.code.endswith(body)
    assert "def has_close_elements" in continued.code
    answer = f"The bug is here.\n\n```python\n{problem.reference}```\n"
    assert extract(answer, problem, "chat").code.strip() == problem.reference.strip()


@pytest.mark.slow
def test_a_result_is_broken_down_by_type_of_bug(tmp_path: Path, assay: Cli) -> None:
    found = benchmarks.load("humanevalfix")
    buggy = read_buggy_programs()
    chosen = found.problems[:12]
    answers = [
        (p.task_id, p.reference if p.labels["bug type"] == "value misuse" else buggy[p.task_id])
        for p in chosen
    ]
    samples = write_completions(tmp_path / "s.jsonl", answers)
    asked = ("score", samples, "--benchmark", "humanevalfix", "--problems", "12")
    done = assay(*asked, "--json")
    assert done.returncode == 0, done.stderr
    breakdowns = json.loads(done.stdout)["results"]["breakdowns"]
    assert set(breakdowns) == {"bug type", "symptom"}
    counts = Counter(p.labels["bug type"] for p in chosen)
    for value, one in breakdowns["bug type"].items():
        assert one["problems"] == counts[value]
        assert one["pass_at_1"] == (1.0 if value == "value misuse" else 0.0)
        assert one["intervals"]["pass_at_1"]["problems"] == counts[value]
    lines = assay(*asked).stdout.splitlines()
    (heading,) = (line for line in lines if line.startswith("  by bug type"))
    assert heading.split() == ["by", "bug", "type", "pass@1", "interval", "problems"]
    (line,) = (line for line in lines if line.strip().startswith("value misuse"))
    assert "100.0 %" in line


def test_results_without_labels_have_no_breakdown(tmp_path: Path, assay: Cli) -> None:
    mini = benchmarks.load("mini")
    samples = write_completions(tmp_path / "s.jsonl", [(p.task_id, "") for p in mini.problems])
    done = assay("score", samples, "--benchmark", "mini", "--json")
    assert "breakdowns" not in json.loads(done.stdout)["results"]
