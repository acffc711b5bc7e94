"""The function's name and what tests need of a program, read off their code."""

from __future__ import annotations

import pytest

from assay.benchmarks.support.test_code import function_under_test, integrity_of


@pytest.mark.parametrize(
    ("assertion", "name"),
    [
        ("assert f(1) == 2", "f"),
        ("assert set(f(x)) == set((4, 5))", "f"),
        ("assert not f(x)", "f"),
        ("assert math.isclose(f(5), 1.2, rel_tol=0.001)", "f"),
        ("assert (f(x)) == True", "f"),
        ("assert sorted(f([3, 1])) == sorted([1, 3])", "f"),
        ("assert f([Pair(5, 24), Pair(15, 25)], 4) == 3", "f"),
        ("assert sum(10, 15) == 6", "sum"),
        ("assert check(1) == True", "check"),
        ("assert round(f(2.5), 2) == tuple([1])", "f"),
    ],
)
def test_the_function_is_found_in_its_assertion(assertion: str, name: str) -> None:
    assert function_under_test([assertion]) == name


def test_a_builtin_gives_way_to_the_other_assertions() -> None:
    assert function_under_test(["assert len(x) == 1", "assert len(f(x)) == 2"]) == "f"


@pytest.mark.parametrize(
    ("code", "preamble", "integrity"),
    [
        ("assert f(1) == 2", "", "separated"),
        ("def check(candidate):\n    assert candidate(1) == 2\ncheck(f)", "", "separated"),
        ("assert math.isclose(f(1), 2)", "import math", "separated"),
        ("assert math.isclose(f(1), 2)", "", "shared"),  # the program's own import
        ("assert f(helper(1)) == 2", "def helper(x): return x", "separated"),
        ("assert f(helper(1)) == 2", "", "shared"),
        ("root = Node(1)\nassert f(root)", "", "shared"),
        ("assert f(lambda x: x)", "", "shared"),
        ("class A: pass\nassert f(A())", "", "shared"),
        ("counter = f(1)\nassert counter() == 2", "", "shared"),
        ("for x in range(3):\n    assert f(x) == x", "", "separated"),
        ("try:\n    f(1)\nexcept ValueError as error:\n    assert str(error)", "", "separated"),
    ],
)
def test_tests_are_run_apart_where_they_need_the_function_alone(
    code: str, preamble: str, integrity: str
) -> None:
    assert integrity_of(code, preamble, "f") == integrity
