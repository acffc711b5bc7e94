"""MBPP: its splits, its prompts, its references."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay import benchmarks
from assay.errors import UsageError
from tests.benchmarks.test_benchmarks import judge_references

pytestmark = pytest.mark.usefixtures("shared_data")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "first", "last", "count"),
    [
        ("mbpp", 11, 510, 500),
        ("mbpp-test", 11, 510, 500),
        ("mbpp-train", 601, 974, 374),
        ("mbpp-validation", 511, 600, 90),
        ("mbpp-prompt", 1, 10, 10),
        ("mbpp-all", 1, 974, 974),
        ("mbpp-sanitized", 2, 809, 427),
        ("mbppplus", 2, 809, 378),
    ],
)
def test_every_subset_is_a_benchmark_of_its_own(
    name: str, first: int, last: int, count: int
) -> None:
    benchmark = benchmarks.load(name)
    assert benchmark.name == name.removesuffix("-test")
    ids = [p.task_id for p in benchmark.problems]
    assert (ids[0], ids[-1], len(set(ids))) == (f"Mbpp/{first}", f"Mbpp/{last}", count)


def test_splits_by_name() -> None:
    assert benchmarks.of_split("mbpp", "train") == "mbpp-train"
    assert benchmarks.of_split("mbpp", "") == "mbpp"
    with pytest.raises(UsageError, match="mbpp: has no split 'dev'. Choose .*train"):
        benchmarks.of_split("mbpp", "dev")


def test_the_prompt_has_the_task_the_name_and_the_assertions() -> None:
    problem = benchmarks.load("mbpp").problems[0]
    assert problem.tests.entry_point == "remove_Occ"
    assert "Write a python function to remove first and last occurrence" in problem.prompt
    assert "The function is called remove_Occ" in problem.prompt
    assert 'assert remove_Occ("hello","l") == "heo"' in problem.prompt
    compile(problem.prompt, "prompt", "exec")  # a docstring, which a base model goes on from


def test_only_tests_that_need_more_than_the_function_share_its_interpreter() -> None:
    problems = benchmarks.load("mbpp-all").problems
    shared = [p.task_id for p in problems if p.tests.integrity == "shared"]
    assert shared == ["Mbpp/367", "Mbpp/596", "Mbpp/601", "Mbpp/927"]


@pytest.mark.parametrize(
    ("name", "every"),
    [
        ("mbpp-sanitized", 10),
        pytest.param("mbpp-sanitized", 1, marks=pytest.mark.slow),
        pytest.param("mbpp-all", 1, marks=pytest.mark.slow),
    ],
)
def test_references_pass(name: str, every: int) -> None:
    benchmark = benchmarks.load(name)
    problems = benchmark.problems[::every]
    assert judge_references(replace(benchmark, problems=problems)) == []
