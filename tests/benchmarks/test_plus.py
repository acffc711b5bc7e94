"""HumanEval+ and MBPP+: inputs, EvalPlus's comparison, references."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay import benchmarks, plain
from assay.benchmarks._evalplus import MATCHER, SAME
from assay.benchmarks.mbppplus import DECODERS
from assay.benchmarks.mbppplus import SPECIAL as MBPP_SPECIAL
from assay.pipeline import references
from assay.sandbox import open_sandbox
from tests.test_references import Watching


def matches(same: str, atol: float, *cases: tuple[Any, Any, Any]) -> list[bool]:
    """Of one group of cases: arguments, expected, got."""
    namespace: dict[str, Any] = {}
    exec(MATCHER.replace("ATOL", repr(atol)).replace("SAME", same), namespace)
    compare = namespace["matcher"]()
    return [bool(compare(arguments, expected, got)) for arguments, expected, got in cases]


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


def test_a_tolerance_stays_for_the_later_cases() -> None:
    mixed = ([], [0.3, 1], [0.1 + 0.2, 1])
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


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [("humanevalplus", 164), ("mbppplus", 378)])
def test_all_references_pass(name: str, count: int, shared_data: Path) -> None:  # noqa: ARG001
    benchmark = benchmarks.load(name)
    sandbox = open_sandbox("process", 2)
    checked = references.check(benchmark, sandbox, Watching(), again=True)
    sandbox.close()
    assert len(checked.benchmark.problems) == count
    assert checked.unscorable == {}
    assert {p.tests.integrity for p in checked.benchmark.problems} == {"separated"}
    for problem in checked.benchmark.problems:
        assert problem.tests.cases is not None
        for group, calls in problem.tests.cases.inputs.items():
            assert len(problem.tests.cases.expected[group]) == len(calls)
