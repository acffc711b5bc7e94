"""The function's name and what tests need of a program, read off their code."""

from __future__ import annotations

import math
from typing import Any

import pytest

from assay.benchmarks.own.problems import TOLERANT
from assay.benchmarks.support import evalplus, evoeval_oracles
from assay.data.test_code import call_tests, function_under_test, integrity_of
from assay.sandbox.inside.judging.scripts import is_close

INF, NAN, HUGE = math.inf, math.nan, 10**400
EVALPLUS = evalplus.MATCHER.replace("SAME", evalplus.SAME).replace("ATOL", "1e-6")
# Every comparison with a tolerance, with the largest that can be chosen.
TOLERANT_COMPARISONS = {
    "cases": call_tests("f", [], 1e8).code,
    "wrapped cases": call_tests("f", [], 1e8, wrapped=True).code,
    "own benchmark": TOLERANT.replace("TOLERANCE", "0.5"),
    "EvalPlus": EVALPLUS,
    "EvoEval": evoeval_oracles.MATCHER,
}
UNEQUAL = [
    (INF, 1.0), (1.0, INF), (INF, -INF), (INF, 1e308), (INF, HUGE), (-INF, -HUGE), (1.0, HUGE),
    (INF, NAN), (NAN, INF), (NAN, 1.0), (1.0, NAN), (INF, True), (INF, "inf"), (INF, None),
    (0.7, True), (0.3, False), (INF, 1j), (INF, [1.0]),
]  # fmt: skip


def matches(code: str, expected: object, got: object) -> bool:
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    try:
        return bool(namespace["matcher"]()([], expected, got))
    except Exception:  # what cannot be compared does not match
        return False


@pytest.mark.parametrize("name", TOLERANT_COMPARISONS)
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x], lambda x: {"a": [x]}])
def test_a_tolerance_is_for_finite_numbers(name: str, wrap: Any) -> None:
    """A tolerance relative to an infinity accepts every number."""
    code = TOLERANT_COMPARISONS[name]
    passed = [pair for pair in UNEQUAL if matches(code, *map(wrap, pair))]
    assert passed == []
    assert matches(code, wrap(INF), wrap(INF))
    assert matches(code, wrap(-INF), wrap(-INF))
    assert matches(code, wrap(0.25), wrap(0.25))


def test_printed_infinities_equal_only_themselves() -> None:
    assert is_close("inf\n", "Infinity")
    assert not any(is_close(one, "inf") for one in ("-inf", "nan", "1e308", "9" * 400 + "x"))
    assert not is_close("nan", "1")


@pytest.mark.parametrize("tolerance", [INF, NAN, -1.0, 1e9])
def test_a_tolerance_is_finite_and_not_negative(tolerance: float) -> None:
    with pytest.raises(ValueError, match="tolerance: is not from 0 to"):
        call_tests("f", [([], 1.0)], tolerance)


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
        ("try:\n    f(1)\nexcept ValueError:\n    pass", "", "separated"),
        ("try:\n    f(1)\nexcept StopIteration:\n    pass", "", "shared"),
        ("try:\n    f(1)\nexcept (ValueError, SystemExit):\n    pass", "", "shared"),
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
