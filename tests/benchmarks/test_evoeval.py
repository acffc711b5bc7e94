"""EvoEval: its comparison, its special oracles, its references."""

from __future__ import annotations

import math
from typing import Any

import pytest

from assay import benchmarks
from assay.benchmarks.support.evoeval_oracles import MATCHER, READ_ARGUMENTS, SPECIAL
from assay.judging import references
from assay.progress import Silent
from assay.prompts import find_strategy, list_strategies
from assay.sandbox import open_sandbox
from assay.types import Job, Limits, Program, Tests
from tests.benchmarks.test_plus import crossed

SETS = {
    "evoeval-difficult": 100,
    "evoeval-creative": 100,
    "evoeval-subtle": 100,
    "evoeval-combine": 100,
    "evoeval-tool-use": 100,
    "evoeval-verbose": 164,
    "evoeval-concise": 164,
}
NAN, INF = math.nan, math.inf
CORNER = [[[0, 0], [1, 0]], (0, 0), (1, 1)]  # a maze with one way; 1 is a wall
OPEN_CORNER = [[[1, 1], [0, 1]], (0, 0), (1, 1)]  # the same way; 0 is a wall


def matches(oracle: str, arguments: list[Any], expected: Any, got: Any) -> bool:
    """Compare as the oracle does, with values that have crossed the border. Errors do not match."""
    namespace: dict[str, Any] = {}
    exec(oracle, namespace)
    try:
        return bool(namespace["matcher"]()(arguments, crossed(expected), crossed(got)))
    except Exception:
        return False


@pytest.mark.parametrize(
    ("expected", "got", "right"),
    [
        (1, 1, True),
        (1, True, False),  # types must match
        (1, 1.0, False),
        (0.3, 0.1 + 0.2, True),
        (1.0, 1.00001, True),  # allclose is relative too
        (1.0, 1.0001, False),
        (0.0, 1e-6, True),
        (NAN, NAN, True),
        (INF, INF, True),
        (INF, -INF, False),
        (INF, 1e308, False),
        ([0.5, NAN], [0.5, NAN], True),
        ([0.5], (0.5,), True),  # a sequence of floats is floats
        ([], (), True),  # an empty one is too
        ([1], (1,), False),
        ([1, 0.5], [1, 0.5 + 1e-9], True),
        ([1, 0.5], [1.0, 0.5], False),
        ([[0.5], [1]], [[0.5 + 1e-9], [1]], True),
        ({"a": 0.5}, {"a": 0.5 + 1e-9}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1}, {"b": 1}, False),
        ({1, 2}, {2, 1}, True),
        (None, None, True),
        (None, [], False),
        ("a", "a", True),
        (1j, 1j, True),
        (b"a", b"a", True),
        (int, int, True),
        # Right for upstream, because numpy broadcasts; wrong here.
        (0.5, [], False),
        (0.5, [0.5], False),
        ([0.5, 0.5], 0.5, False),
        ([0.5, 0.5], [0.5], False),
        ([0.5, 0.7], [], False),
    ],
)
def test_the_comparison(expected: Any, got: Any, right: bool) -> None:
    assert matches(MATCHER, [], expected, got) is right


@pytest.mark.parametrize(
    ("key", "arguments", "expected", "got", "right"),
    [
        (("verbose", "HumanEval/32"), [[1, 2]], -0.5, -0.5, True),
        (("concise", "HumanEval/32"), [[-6, 11, -6, 1]], 1.0, 3.0, True),
        (("concise", "HumanEval/32"), [[-6, 11, -6, 1]], 1.0, 1.5, False),
        (("subtle", "EvoEval/32"), [[-8, 0, 1]], 2.0, 2.0, True),  # x ** 3 - 8
        (("subtle", "EvoEval/32"), [[-8, 0, 1]], 2.0, 1.0, False),
        (("difficult", "EvoEval/10"), ["ab"], "abA", "abA", True),
        (("difficult", "EvoEval/10"), ["ab"], "aba", "abA", True),
        (("difficult", "EvoEval/10"), ["ab"], "aba", "abb", False),
        (("difficult", "EvoEval/10"), ["ab"], "aba", "abba", False),
        (("difficult", "EvoEval/32"), [[1, 2], (-1, 1)], -0.5, -0.505, True),
        (("difficult", "EvoEval/32"), [[1, 2], (0, 1)], None, None, True),
        (("difficult", "EvoEval/32"), [[1, 2], (0, 1)], -0.5, -0.5, False),
        (("creative", "EvoEval/26"), CORNER, ["x"], ["right", "down"], True),
        (("creative", "EvoEval/26"), CORNER, ["x"], ["down", "right"], False),
        (("creative", "EvoEval/26"), CORNER, ["x"], [], False),
        (("creative", "EvoEval/26"), [[[0], [0]], (0, 0), (0, 0)], [], [], True),
        (("creative", "EvoEval/26"),
         [[[0, 0], [0, 0]], (0, 0), (1, 1)], ["x"], ["left", "right", "right", "down"], False),
        (("creative", "EvoEval/30"),
         OPEN_CORNER, ["x"], [(0, 0), (0, 1), (1, 1)], True),
        (("creative", "EvoEval/30"), OPEN_CORNER, ["x"], [(0, 0), (1, 1)], False),
        (("creative", "EvoEval/30"), OPEN_CORNER, ["x"], [(0, 0), (1, 0), (1, 1)], False),
        (("creative", "EvoEval/30"), [[[1]], (0, 0), (0, 0)], [], [], True),
        (("creative", "EvoEval/69"), [[2, 3, 4], 8], (0, 2), (0, 2), True),
        (("creative", "EvoEval/69"), [[2, 3, 4], 8], (0, 2), [0, 2], False),
        (("creative", "EvoEval/69"), [[2, 3, 4], 8], (0, 2), (0, 1), False),
        (("creative", "EvoEval/69"), [[2, 3, 4], 8], (0, 2), (-3, 2), False),
        (("creative", "EvoEval/69"), [[2, 3], 8], "No magic today", "No magic today", True),
        (("creative", "EvoEval/69"), [[2, 3], 8], "No magic today", (0, 1), False),
    ],
)  # fmt: skip
def test_special_oracles(
    key: tuple[str, str], arguments: list[Any], expected: Any, got: Any, right: bool
) -> None:
    assert matches(SPECIAL[key], arguments, expected, got) is right


def test_inputs_are_expressions() -> None:
    namespace: dict[str, Any] = {}
    exec(READ_ARGUMENTS, namespace)
    read = namespace["read_arguments"]
    assert read("[1] * 3, float('inf')") == [[1, 1, 1], INF]
    assert read("") == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), SETS.items())
def test_problems_know_their_origin(name: str, count: int) -> None:
    found = benchmarks.load(name)
    assert len(found.problems) == count
    assert all(p.cluster and p.cluster.startswith("HumanEval/") for p in found.problems)
    assert {p.date for p in found.problems} == {"2024-03-28"}
    assert all(p.tests.integrity == "separated" for p in found.problems)
    assert list_strategies(found)[-1] == "upstream"
    asked = find_strategy("upstream", found).build(found.problems[0], "chat").messages[0].content
    assert asked.endswith(f"```python\n{found.problems[0].prompt.strip()}\n```\n")


def test_combined_problems_share_clusters() -> None:
    problems = benchmarks.load("evoeval-combine").problems
    assert len({p.cluster for p in problems}) < len(problems)


def test_helpers_of_tool_use_precede_programs() -> None:
    (problem,) = (
        p for p in benchmarks.load("evoeval-tool-use").problems if p.task_id == "EvoEval/0"
    )
    assert "def get_digit_count" in problem.tests.preamble
    assert "def distribute_candies" not in problem.tests.preamble


def check(name: str, tasks: slice) -> dict[str, str]:
    found = benchmarks.load(name)
    some = found.problems[tasks]
    judge = open_sandbox("process", 2)
    try:
        return references.check(
            type(found)(found.name, found.version, found.data_sha256, some, found.limits),
            judge,
            Silent(),
        ).unscorable
    finally:
        judge.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_some_references_pass(name: str) -> None:
    assert check(name, slice(1, None, 33)) == {}


@pytest.mark.whole
@pytest.mark.parametrize("name", SETS)
def test_all_references_pass(name: str) -> None:
    """Measured: 828 of 828."""
    assert check(name, slice(None)) == {}


def test_an_input_of_millions_reaches_a_program() -> None:
    tests = Tests(
        "f", MATCHER + READ_ARGUMENTS, "", "separated",
        benchmarks.load("evoeval-creative").problems[0].tests.cases,
    )  # fmt: skip
    assert tests.cases is not None
    cases = type(tests.cases)({"base": ["[1] * 3_000_000"]}, {"base": [3_000_000]}, "")
    tests = Tests("f", tests.code, "", "separated", cases)
    programs = [Program(f"def f(x):\n    return {body}\n", "") for body in ("len(x)", "3000001")]
    jobs = [Job("t", n, p, tests, Limits(memory_mb=1024)) for n, p in enumerate(programs)]
    judge = open_sandbox("process", 1)
    try:
        found = {v.sample: (v.status, v.reason) for v in judge.judge(jobs)}
    finally:
        judge.close()
    assert found == {0: ("pass", "passed"), 1: ("fail", "wrong-answer")}
