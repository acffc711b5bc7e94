"""HumanEval+ and MBPP+: inputs, EvalPlus's comparison, references."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import benchmarks
from assay.benchmarks.humanevalplus import ZERO_MATCHER
from assay.benchmarks.mbppplus import DECODERS
from assay.benchmarks.mbppplus import SPECIAL as MBPP_SPECIAL
from assay.benchmarks.support.evalplus import MATCHER, SAME
from assay.data import plain
from assay.judging import references
from assay.sandbox import open_sandbox
from assay.sandbox.inside.judging import trial
from tests.judging.test_references import Watching

INF, NAN = float("inf"), float("nan")


def matches(
    same: str, atol: float, *cases: tuple[Any, Any, Any], matcher: str = MATCHER
) -> list[bool]:
    """Of one group of cases: arguments, expected, got. What raises does not match."""
    namespace: dict[str, Any] = {}
    exec(matcher.replace("ATOL", repr(atol)).replace("SAME", same), namespace)
    compare = namespace["matcher"]()
    return [trial._right(compare, arguments, crossed(e), crossed(g)) for arguments, e, g in cases]


def crossed(value: Any) -> Any:
    return plain.decode(json.loads(json.dumps(plain.encode(value))))


@pytest.mark.parametrize(
    ("expected", "got", "right"),
    [
        (1, 1, True),
        (1, 1.0, True),
        (1, True, True),
        (1, 2, False),
        (0.3, 0.1 + 0.2, True),
        (0.3, 0.3001, False),
        ([0.3], [0.1 + 0.2], True),
        ((0.3,), (0.1 + 0.2,), True),
        ((0.3,), [0.1 + 0.2], False),  # types must be equal where floats are not
        ([0.3], [0.3, 0.3], False),
        ([0.3, 1], [0.1 + 0.2, 1], False),  # not all floats: exact
        ([[0.3]], [[0.1 + 0.2]], False),
        ("a", "a", True),
        (float("inf"), float("inf"), True),
        (float("nan"), float("nan"), False),
        (1e9, 1e9 + 1, True),  # relative
    ],
)
def test_floats_are_compared_as_evalplus_does(expected: Any, got: Any, right: bool) -> None:
    assert matches(SAME, 0, ([], expected, got)) == [right]


# With a tolerance of 1e-6 in force.
WRONG = [
    # A looser comparison, by tolerance or by items alone, accepts these.
    (INF, 1.5), (INF, -INF), (-INF, 0.0), (-INF, INF), ([1.0, INF], [1.0, 2.0]), ((-INF,), (0.5,)),
    ([[INF]], [[1.0]]), (complex(INF, 0), 1j), (complex(1, INF), complex(1, 7)),
    (10**30, 10**30 + 1), (2**64, 2**64 + 1), (-(2**63) - 1, -(2**63)), ([10**20], [1e20 + 1e6]),
    ([[0.5]], [{0.5: 1}]), ([[0.5]], [{0.5}]), ([0.5], [Fraction(1, 2) + Fraction(1, 10**9)]),
    # Others that differ.
    (INF, NAN), (NAN, NAN), (NAN, INF), (NAN, 1.0), (1.0, NAN), (1.0, INF), ([NAN], [NAN]),
    ([0.5, NAN], [0.5, NAN]), (0.5, plain.Opaque("float")), ([0.5], [plain.Opaque("float")]),
    (0.5, Fraction(1, 2) + Fraction(1, 10**9)), (Decimal("0.5"), Decimal("0.50000001")),
    (Decimal("NaN"), Decimal("NaN")), (0.5, Decimal("NaN")), (0.5, Decimal("sNaN")),
    (0.5, "0.5"), ([0.5], [[0.5]]), ([0.5], 0.5), (0.5, [0.5]), ([0.5], []), (1.5e308, -1.5e308),
    ({0.3}, {0.1 + 0.2}), ({"a": 0.3}, {"a": 0.1 + 0.2}), (10**9, 10**9 + 1.0), (1, 1.0000001),
    (0.0, 10**400), (complex(1e308, 1e308), 0j),
]  # fmt: skip
RIGHT = [
    (INF, INF), (-INF, -INF), ([1.0, INF], [1.0 + 1e-9, INF]), (0.0, -0.0), (0.0, 1e-7),
    (1, True), (1.0, 1), (0.5, Fraction(1, 2)), (0.5, Decimal("0.5")), (2**53 + 1, 2**53 + 1),
    ([1, 0.5], [True, 0.5 + 1e-9]), ([(0.3,)], [[0.1 + 0.2]]),
    (1j, 1e-9 + 1j), (10**9, 10**9 + 1),  # as numpy has it
    ("a", "a"), ([None, 0.3], [None, 0.1 + 0.2]), (10**400, 10**400),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "got"), WRONG, ids=repr)
def test_wrong_answers_are_wrong_with_a_tolerance(expected: Any, got: Any) -> None:
    assert matches(SAME, 1e-6, ([], expected, got)) == [False]


@pytest.mark.parametrize(("expected", "got"), RIGHT, ids=repr)
def test_right_answers_are_right_with_a_tolerance(expected: Any, got: Any) -> None:
    assert matches(SAME, 1e-6, ([], expected, got)) == [True]


NUMBERS = st.sampled_from(
    [0, 1, True, -1, 10**9, 10**9 + 50, 0.0, -0.0, 0.3, 0.1 + 0.2, 1 + 9e-7, 1 + 2e-6, 1e-7, 5e-324,
     1e300, 1e300 * (1 + 9e-8), 1.7e308, -1.7e308, INF, -INF, NAN, 2**53 + 1, 2**63, 1j, 1 + 1e-7j,
     complex(INF, 1), complex(1, NAN)]
)  # fmt: skip
PAIRS = st.integers(1, 3).flatmap(
    lambda n: st.tuples(*[st.lists(NUMBERS, min_size=n, max_size=n)] * 2)
)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(deadline=None)  # for the import of numpy
@given(PAIRS | st.tuples(NUMBERS, NUMBERS), st.sampled_from([1e-4, 1e-6]))
def test_numbers_are_close_as_numpy_has_it(pair: tuple[Any, Any], atol: float) -> None:
    numpy = pytest.importorskip("numpy")
    expected, got = pair
    right = crossed(got) == crossed(expected) or (
        type(got) is type(expected) and bool(numpy.allclose(got, expected, rtol=1e-7, atol=atol))
    )
    assert matches(SAME, atol, ([], expected, got)) == [right]
    nested = matches(SAME, atol, ([], [expected], [got]), ([], (expected,), (got,)))
    assert nested == [numpy.allclose(got, expected, rtol=1e-7, atol=atol)] * 2


def test_a_zero_has_to_be_one() -> None:
    """A value near the reference's zero is wrong where the polynomial is steep."""
    steep = [[-1e9, 1e9]]
    for got, right in ((1.0, True), (1.00005, False), (1, True), (NAN, False), (INF, False)):
        found = matches("", 1e-4, (steep, 1.0, got), matcher=ZERO_MATCHER)
        assert found == [right], got
    assert matches("", 1e-4, ([[-4, 0, 1]], 2.0, -2.0), matcher=ZERO_MATCHER) == [True]
    # Where the reference itself is not nearer, its value is right, and a worse one is not.
    for got, right in ((1.001, True), (0.9995, True), (1.002, False)):
        assert matches("", 1e-4, (steep, 1.001, got), matcher=ZERO_MATCHER) == [right], got
    for wrong in ("2", None, 2 + 0j, [2.0], 10**400):
        assert matches("", 1e-4, ([[-4, 0, 1]], 2.0, wrong), matcher=ZERO_MATCHER) == [False]


@pytest.mark.no_cover
def test_items_that_collide_do_not_keep_the_comparison_busy() -> None:
    """In quadratic time, these take 2.6 s, and ten times as many take a hundred times as long."""
    got = [k * sys.hash_info.modulus for k in range(1, 20_000)]
    started = time.process_time()
    assert matches(MBPP_SPECIAL["Diff"], 0, ([], [1, 2], got)) == [False]
    assert matches(MBPP_SPECIAL["Diff"], 0, ([], [1, 2], range(10**6))) == [False]
    assert time.process_time() - started < 0.5


def test_a_tolerance_stays_for_the_later_cases() -> None:
    mixed: tuple[Any, Any, Any] = ([], [0.3, 1], [0.1 + 0.2, 1])
    assert matches(SAME, 0, mixed, ([], 0.5, 0.5), mixed) == [False, True, True]
    assert matches(SAME, 1e-4, ([], 1, 1.00001), ([], [1], [1.00001])) == [False, True]


@pytest.mark.parametrize(
    ("name", "arguments", "expected", "got", "right"),
    [
        ("are_equivalent", [36, 57], False, True, True),
        ("sum_div", [1], 1, 0, True),
        ("sum_div", [8], 7, 6, False),
        ("similar_elements", [(1, 2), (2, 1)], (1, 2), [2, 1], True),
        ("similar_elements", [(1, 2), (2, 1)], (1, 2), [2, 3], False),
        ("similar_elements", [(1, 2), (2, 1)], (1, 2), [2, 1, 2], True),
        ("similar_elements", [(1, 2), (2, 1)], (1, 2), [2], False),
        ("similar_elements", [(1, 2), (2, 1)], (1, 2), [1, 2, [1]], False),
        ("surface_Area", [3, 4], 33, 35, True),
        ("surface_Area", [3, 4], 33, 34, False),
        ("digit_distance_nums", [1, 100], 1, 2, True),
        ("digit_distance_nums", [1, 100], 1, 3, False),
        ("check_str", ["a"], plain.Opaque("Match"), True, True),
        ("check_str", ["a"], plain.Opaque("Match"), plain.Opaque("Match"), True),
        ("check_str", ["a"], None, False, True),
        ("check_str", ["a"], None, 0, False),
    ],
)
def test_special_cases(name: str, arguments: Any, expected: Any, got: Any, right: bool) -> None:
    assert matches(MBPP_SPECIAL[name], 0, (arguments, expected, got)) == [right]


@pytest.mark.parametrize(
    ("task", "arguments", "restored"),
    [
        (2, [[1, 2], [3]], [(1, 2), (3,)]),
        (63, [[[1, 2], [3, 4]]], [[(1, 2), (3, 4)]]),
        (259, [[[1, 2]], [[3, 4]]], [((1, 2),), ((3, 4),)]),
        (75, [[[1, 2]], 3], [[(1, 2)], 3]),
        (106, [[1], [2]], [[1], (2,)]),
        (115, [[[1, 1], [], {}]], [[{1}, {}, {}]]),
        (124, ["1", "2j"], [1.0, 2j]),
        (252, ["1+2j"], [1 + 2j]),
        (278, [[1, [2, 3]]], [(1, (2, 3))]),
        (307, [[1, []], 2, 3], [(1, []), 2, 3]),
        (722, [{"a": [1, 2]}, 3, 4], [{"a": (1, 2)}, 3, 4]),
        (580, [[1, [2, [3]]]], [(1, (2, (3,)))]),
    ],
)
def test_inputs_are_what_they_were_before_json(task: int, arguments: Any, restored: Any) -> None:
    assert DECODERS[task](arguments) == restored


@pytest.mark.parametrize(
    "every", [pytest.param(9, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.whole)]
)
@pytest.mark.parametrize(("name", "count"), [("humanevalplus", 164), ("mbppplus", 378)])
@pytest.mark.usefixtures("shared_data")
def test_references_pass(name: str, count: int, every: int) -> None:
    benchmark = benchmarks.load(name)
    assert len(benchmark.problems) == count
    some = replace(benchmark, problems=benchmark.problems[::every])
    sandbox = open_sandbox("process", 2)
    checked = references.check(some, sandbox, Watching(), again=True)
    sandbox.close()
    assert len(checked.benchmark.problems) == len(some.problems)
    assert checked.unscorable == {}
    assert {p.tests.integrity for p in checked.benchmark.problems} == {"separated"}
    for problem in checked.benchmark.problems:
        assert problem.tests.cases is not None
        for group, calls in problem.tests.cases.inputs.items():
            assert len(problem.tests.cases.expected[group]) == len(calls)
