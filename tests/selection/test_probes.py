"""What programs do with their prompt's examples, in the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.data import plain
from assay.sandbox import Sandbox, open_sandbox
from assay.selection import Conduct, ProbeResults
from assay.selection._probes import SAME as SAME_CODE
from assay.selection._probes import canonical, probe
from assay.types import Job, Problem, Program, Tests

PROMPT = '''\
from typing import List

def f(x: List[int]) -> float:
    """Say it.
    >>> f([1, 2])
    1.5
    >>> f([4])
    4
    >>> f([])

    """
'''
SEPARATED = Problem("t", PROMPT, "", Tests("f", "", "from typing import List", "separated"))
SHARED = replace(SEPARATED, tests=replace(SEPARATED.tests, integrity="shared"))
RIGHT = "def f(x):\n    return sum(x) / len(x) if x else None\n"
SAME = "def f(x: List[int]):\n    return sum(n / len(x) for n in x) + 1e-13 if x else None\n"
WRONG = "def f(x):\n    return x[0] if x else None\n"
FAILS = "def f(x):\n    return sum(x) / len(x)\n"
ALWAYS_EQUAL = """
class Equal:
    __hash__ = None
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __repr__(self): return "1.5"
def f(x): return Equal()
"""
LYING = """
class Lying(float):
    def __eq__(self, other): return True
    def __sub__(self, other): return 0.0
def f(x): return Lying(7)
"""
EXITS = "import os\nos._exit(0)\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    opened = open_sandbox("process", 2)
    yield opened
    opened.close()


def seen(sandbox: Sandbox, problem: Problem, *programs: str, checked: bool) -> list[ProbeResults]:
    found = probe(problem, checked=checked)
    assert found is not None
    jobs = [Job("t", i, Program(code, "x"), found.tests) for i, code in enumerate(programs)]
    told = {v.sample: found.read(v, outputs) for v, outputs in sandbox.outputs(jobs)}
    return [told[i] for i in range(len(programs))]


def test_right_examples_are_counted(sandbox: Sandbox) -> None:
    told = seen(sandbox, SEPARATED, RIGHT, SAME, WRONG, FAILS, EXITS, "def f(:", checked=True)
    assert [one.right for one in told] == [3, 3, 2, 2, 0, 0]


def test_an_always_equal_object_is_right_nowhere(sandbox: Sandbox) -> None:
    told = seen(sandbox, SEPARATED, ALWAYS_EQUAL, LYING, checked=True)
    assert [one.right for one in told] == [0, 0]


def test_programs_that_behave_alike(sandbox: Sandbox) -> None:
    right, same, wrong, fails, exits = seen(
        sandbox, SEPARATED, RIGHT, SAME, WRONG, FAILS, EXITS, checked=False
    )
    assert right == same
    assert right.conduct == wrong.conduct == Conduct.ANSWERS
    assert right.behaviour != wrong.behaviour
    assert fails.conduct == exits.conduct == Conduct.FAILS
    assert fails.behaviour != exits.behaviour


def test_objects_behave_like_nothing_else(sandbox: Sandbox) -> None:
    first, second, lying, fourth = seen(
        sandbox, SEPARATED, ALWAYS_EQUAL, ALWAYS_EQUAL + "\n", LYING, RIGHT, checked=False
    )
    assert first.conduct == second.conduct == Conduct.OPAQUE
    assert first.behaviour != second.behaviour
    assert lying.behaviour != fourth.behaviour  # it crosses as the plain number it is


def test_doctests_run_beside_programs_whose_tests_do(sandbox: Sandbox) -> None:
    right, same, wrong, fails, exits = seen(
        sandbox, SHARED, RIGHT, SAME, WRONG, FAILS, EXITS, checked=True
    )
    assert (right.right, right.conduct) == (2, Conduct.ANSWERS)  # it prints 4.0 where 4 is shown
    assert wrong.right == 2
    assert right.behaviour != same.behaviour  # 1.5000000000001
    assert (fails.right, fails.conduct) == (1, Conduct.FAILS)
    assert exits == ProbeResults(behaviour="exit")
    assert seen(sandbox, SHARED, RIGHT, checked=False) == [right]


def test_addresses_are_no_behaviour(sandbox: Sandbox) -> None:
    program = "class A: pass\nkept = [A() for _ in range({})]\ndef f(x): return A()\n"
    a, b = seen(sandbox, SHARED, program.format(1), program.format(1000), checked=True)
    assert a == b


def test_a_prompt_without_examples_has_no_probe() -> None:
    for problem in (SEPARATED, SHARED):
        bare = replace(problem, prompt='def f(x):\n    """Say it."""\n')
        assert probe(bare, checked=True) is None


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e6, 1e6) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(), inner, max_size=3)
        | st.sets(st.text() | st.integers(), max_size=4)
    ),
    max_leaves=8,
)


@given(PLAIN, PLAIN)
def test_equal_values_are_written_alike_and_others_are_not(a: Any, b: Any) -> None:
    assert canonical(plain.encode(a)) == canonical(plain.encode(a))
    if a == b:
        assert canonical(plain.encode(a)) == canonical(plain.encode(b))
    elif not _holds_a_float([a, b]):
        assert canonical(plain.encode(a)) != canonical(plain.encode(b))


def _holds_a_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_a_float, value.values()))
    if isinstance(value, list | tuple | set):
        return any(map(_holds_a_float, value))
    return isinstance(value, float)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (0.1 + 0.2, 0.3),
        (1, 1.0),
        (True, 1),
        ({"x", "y", "z", 1, 9}, {9, 1, "z", "y", "x"}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ],
)
def test_what_differs_in_writing_only(a: Any, b: Any) -> None:
    assert canonical(plain.encode(a)) == canonical(plain.encode(b))
    assert canonical(plain.encode([a])) != canonical(plain.encode([a, b]))


@pytest.mark.parametrize(
    ("got", "expected", "right"),
    [
        (1.5 + 1e-9, 1.5, True),
        (1.5, 1.6, False),
        (float("inf"), float("inf"), True),
        (1.5, float("inf"), False),  # within a tolerance relative to infinity
        ([1.5], [-float("inf")], False),
        (float("nan"), 1.5, False),
        (float("inf"), 1.5, False),
    ],
)
def test_shown_numbers_are_rounded_and_infinities_are_not(
    got: Any, expected: Any, right: bool
) -> None:
    namespace: dict[str, Any] = {}
    exec(SAME_CODE, namespace)
    assert namespace["same"](got, expected) is right
