"""Calls are foreseen only where they are certain."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from assay.sandbox.inside.judging import foresee, wire


def calls(code: str, name: str) -> list[foresee.Call]:
    found = foresee.calls(code, name)
    if found:
        sent = wire.load_calls(wire.dump_recipes(foresee.recipes(code, name)))
        assert sent == found == wire.load_calls(wire.dump_calls(list(found)))
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


@pytest.mark.parametrize(
    "literal", ["{12, 13, 14, 15, 16}", "{8, 0}", "{-1, (2, 3), 8, 16, 0}", "[{1, 9, 17}, {9, 1}]"]
)
def test_a_set_is_made_in_the_order_that_the_tests_make_it_in(literal: str) -> None:
    recipes = foresee.recipes(f"assert f({literal})", "f")
    (((sent,), _),) = wire.load_calls(wire.dump_recipes(recipes))
    assert repr(sent) == repr(eval(literal))


def test_calls_are_data_that_do_not_tell_where_or_how_often_they_stand() -> None:
    """In a code object, line and column would tell ``assert`` from ``assert not``."""
    plainly = "assert f('one', 2)"
    otherwise = "x = 'one'\n\nassert not       (f('one', 2) == 'one')"
    messages = [wire.dump_calls(list(foresee.calls(code, "f"))) for code in (plainly, otherwise)]
    assert messages[0] == messages[1]
    with pytest.raises((ValueError, TypeError, IndexError)):
        wire.load_calls(b"c" + messages[0][1:])


def executed(code: str, answers: Mapping[int, object]) -> tuple[list[int], list[str]]:
    """Run tests that are not stopped; the calls they make and the errors they would end with."""
    made: list[int] = []
    errors: list[str] = []

    def f(x: int) -> object:
        made.append(x)
        return answers[x]

    exec(
        foresee.compile_unstopped(code, "f"),
        {"f": f, foresee.NOTE: lambda e: errors.append(type(e).__name__), **foresee.HELPERS},
    )
    return made, errors


@pytest.mark.parametrize(
    "code",
    [
        "assert f(1) == 1\nassert f(2) == 2\nassert f(3) == 3",
        "for n in (1, 2, 3):\n    assert f(n) == n",
        "assert f(1) == 1 and f(2) == 2 and f(3) == 3",
        "def check(candidate):\n    for n in (1, 2, 3):\n        x = candidate(n)\n"
        "        assert x == n, 'wrong'\ncheck(f)",
        "if True:\n    assert f(1) == 1\n    x = f(2)\n    assert x == 2\nassert f(3) == 3",
        # A message is made after a wrong answer alone, as six tasks of HumanEval have it.
        "assert f(1) == 1, f'gave {f(1)}'\nassert f(2) == 2, str(f(2))\nassert f(3) == 3",
        "def show(n):\n    return str(f(n))\n"
        "assert f(1) == 1, show(1)\nfor n in (2, 3):\n    assert f(n) == n, show(n)",
        "assert all(f(n) == n for n in (1, 2, 3))",
        "assert not any(f(n) != n for n in (1, 2, 3))",
        "assert not (f(1) != 1 or f(2) != 2 or f(3) != 3)",
        "assert (f(1) == 1 and f(2) == 2) is True\nassert f(3) == 3",
        "def one(n):\n    assert f(n) == n\ndef two():\n    one(1)\n    one(2)\n    one(3)\ntwo()",
        "def test():\n    assert f(1) == 1\n    assert f(2) == 2, f(2)\n"
        "    assert f(3) == 3\ntest()",
    ],
)
def test_the_calls_say_nothing_about_earlier_answers(code: str) -> None:
    """Tests that end at the first failure tell the program that its answer was wrong."""
    right = executed(code, {1: 1, 2: 2, 3: 3})
    assert right == ([1, 2, 3], [])
    for wrong in ({1: 0, 2: 2, 3: 3}, {1: 1, 2: 0, 3: 3}, {1: None, 2: "x", 3: 0}):
        made, errors = executed(code, wrong)
        assert made == [1, 2, 3]
        assert errors[0] == "AssertionError"


def test_errors_that_tests_expect_stay_theirs() -> None:
    code = (
        "def check(g):\n    try:\n        g(1).x\n        assert False\n"
        "    except AttributeError:\n        pass\n    assert g(2) == 2\ncheck(f)"
    )
    assert executed(code, {1: 1, 2: 2}) == ([1, 2], [])


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("assert f(1) == 1 or f(9)", []),
        ("assert any(f(n) == n for n in (1, 9))", []),
        ("assert (f(0) or f(1)) == 1", []),
        ("assert (f(1) and f(0)) == 0", []),
        ("assert not (f(0) and f(9))", []),
        ("assert f(0) or f(9)", ["KeyError"]),
        ("assert f(1) == 2 or f(9)", ["KeyError"]),
        ("assert all(f(n) for n in (1, 0, 9))", ["AssertionError"]),
        # What tests catch themselves is not a failure.
        (
            "def bad():\n    assert f(1) == 2, f(1)\ntry:\n    bad()\n"
            "except AssertionError:\n    pass\nelse:\n    raise ValueError",
            [],
        ),
        ("def g(n):\n    return n and f(n)\nassert g(1) == 1 and g(0) == 0", []),
    ],
)
def test_tests_mean_what_they_meant(code: str, wrong: list[str]) -> None:
    """An operand that Python would not have evaluated decides nothing, whatever it raises."""
    assert executed(code, {0: 0, 1: 1})[1] == wrong
