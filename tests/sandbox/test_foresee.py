"""Calls are foreseen only where they are certain."""

from __future__ import annotations

import pytest

from assay.sandbox._inside import foresee


def calls(code: str, name: str) -> list[foresee.Call]:
    found, made_anew = foresee.calls(code, name)
    assert eval(made_anew, {}) == found
    return found


def test_all_calls_in_order_with_their_arguments() -> None:
    code = (
        "def check(candidate):\n    assert candidate([1, 2], k=3) == candidate(4)\n"
        "    x = candidate(-1.5)\n    assert x\ncheck(f)\n"
    )
    assert calls(code, "f") == [(([1, 2],), {"k": 3}), ((4,), {}), ((-1.5,), {})]
    assert calls("assert f((1, 'a'), {2}) == 3\nassert not f(None)", "f") == [
        (((1, "a"), {2}), {}),
        ((None,), {}),
    ]


@pytest.mark.parametrize(
    "code",
    [
        "for x in [1]:\n    assert f(x)",
        "assert f(x) == 1",
        "assert f(f(1)) == 1",
        "assert f(1) or f(2)",
        "assert [f(1) for _ in range(3)]",
        "assert f(*[1]) == 2",
        "assert f(**{'a': 1}) == 2",
        "if True:\n    assert f(1)",
        "assert all(map(f, [1]))",
        "assert f(1) == 2, f(3)",
        "assert (lambda: f(1))()",
        "def check(candidate):\n    assert candidate(1) == f(1)\ncheck(f)",
        "x = 1",
        "",
    ],
)
def test_none_where_one_is_not_certain(code: str) -> None:
    assert calls(code, "f") == []
