"""HumanEval Pro, MBPP Pro and BigCodeBench-Lite Pro: references, prompts, origins."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import assay
from assay import benchmarks
from assay.errors import SandboxError
from assay.extract import extract
from assay.prompts import find_strategy, list_strategies
from assay.sandbox.environments import store as environments

COUNTS = {"humaneval-pro": 164, "mbpp-pro": 378, "bigcodebench-lite-pro": 57}
# Its tests expect the local time of a machine at UTC+8; programs here run at UTC.
LOCAL_TIME = {"BigCodeBenchLitePro/551"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["humaneval-pro", "mbpp-pro"])
def test_all_references_pass(name: str) -> None:
    found = benchmarks.load(name)
    with assay.Judge(found) as judge:
        assert judge.unscorable == {}
        verdicts = judge.judge([(p.task_id, p.reference) for p in found.problems])
    assert [v.task_id for v in verdicts if v.status != "pass"] == []
    shared = {v.task_id for v in verdicts if v.integrity == "shared"}
    assert shared == ({"HumanEvalPro/2"} if name == "humaneval-pro" else set())


@pytest.mark.slow
def test_references_with_libraries() -> None:
    """Measured: 56 of 57."""
    found = benchmarks.load("bigcodebench-lite-pro")
    try:
        environments.find(found.environment)
    except SandboxError as error:
        pytest.skip(str(error))
    with assay.Judge(found) as judge:
        assert set(judge.unscorable) == LOCAL_TIME


@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_problems_know_their_origin(name: str, count: int) -> None:
    found = benchmarks.load(name)
    assert len(found.problems) == count
    assert len({p.cluster for p in found.problems}) == count
    assert {p.date for p in found.problems} == {"2024-12-30"}
    assert list_strategies(found) == ["standard", "scot", "upstream", "upstream-cot"]


@pytest.mark.slow
def test_clusters_are_tasks_of_the_original_benchmarks() -> None:
    for name, original in (("humaneval-pro", "humaneval"), ("mbpp-pro", "mbppplus")):
        tasks = {p.task_id: p for p in benchmarks.load(original).problems}
        missing = []
        for problem in benchmarks.load(name).problems:
            assert problem.cluster in tasks
            name_of_first = tasks[problem.cluster].tests.entry_point
            if not re.search(rf"def {name_of_first}\b", problem.prompt):
                missing.append(problem.task_id)
        # Three of MBPP Pro begin with a helper of the original instead.
        helpers = ["MbppPro/68", "MbppPro/157", "MbppPro/329"]
        assert missing == ([] if name == "humaneval-pro" else helpers)


@pytest.mark.slow
def test_a_solution_of_the_first_problem_alone_fails() -> None:
    found = benchmarks.load("humaneval-pro")
    parts = {p.task_id: p.reference.partition("\n# Given") for p in found.problems[:8]}
    programs = {task: first for task, (first, _, second) in parts.items() if second}
    verdicts = assay.judge(programs, "humaneval-pro")
    assert Counter(v.status for v in verdicts) == {"fail": 7}


def test_prompts_have_both_problems() -> None:
    for name in COUNTS:
        found = benchmarks.load(name)
        problem = found.problems[1]
        name_of_second = problem.tests.entry_point
        for strategy in list_strategies(found):
            build = find_strategy(strategy, found).build
            chat, text = build(problem, "chat"), build(problem, "text")
            assert problem.prompt.strip() in chat.messages[-1].content
            assert f"def {name_of_second}" in chat.messages[-1].content
            assert text.text.endswith(f"```python\n{problem.prompt}")
            assert "return len(separate_paren_groups" not in text.text


def test_upstreams_words() -> None:
    """As CodeEval-Pro's eval/utils.py and prompt_template.py build them."""
    found = benchmarks.load("mbpp-pro")
    text = find_strategy("upstream", found).build(found.problems[1], "text").text
    assert text.startswith("You are an exceptionally intelligent coding assistant that ")
    assert "user instructions.\n@@ Instruction\nWrite a solution of python file to the " in text
    assert "first_n_non_primes(start, end, N):\n```\n\n@@ Response\n```python\n# Write a " in text
    thought = find_strategy("upstream-cot", found).build(found.problems[1], "text").text
    assert "\n@@ Response\nLet's think step by step.\n```python\n" in thought


def test_continuations_and_answers_become_programs() -> None:
    problem = benchmarks.load("humaneval-pro").problems[1]
    rest = problem.reference.removeprefix(problem.prompt.rstrip())
    continued = extract(rest, problem, "text")
    answered = extract(f"Here:\n```python\n{problem.reference}\n```", problem, "chat")
    programs = [(problem.task_id, one.code) for one in (continued, answered)]
    assert {v.status for v in assay.judge(programs, "humaneval-pro")} == {"pass"}
