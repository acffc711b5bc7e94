"""Examples in prompts: read, never executed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay import benchmarks
from assay.selection._reading import PromptExample, examples_in
from assay.types import Benchmark

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)
ARROWS = ("==", "=", "==>", "=>", "->", "➞", "→", "returns", "should return", "# returns", "# =>")


def prompt(words: str) -> str:
    indented = words.replace("\n", "\n    ")
    return f'def f(x, y=0):\n    r"""Does it.\n\n    {indented}\n    """\n'


@given(st.lists(PLAIN, min_size=1, max_size=3), PLAIN, st.sampled_from(ARROWS))
def test_calls_with_an_arrow(arguments: list[Any], value: Any, arrow: str) -> None:
    shown = ", ".join(map(repr, arguments))
    words = f"entry({shown}) {arrow} {value!r}\nand so on"
    assert examples_in(words, "entry") == [PromptExample(tuple(arguments), f"same(got, {value!r})")]


@given(st.lists(PLAIN, min_size=1, max_size=3), PLAIN)
def test_doctests_and_assertions(arguments: list[Any], value: Any) -> None:
    shown = ", ".join(map(repr, arguments))
    expected = [PromptExample(tuple(arguments), f"same(got, {value!r})")]
    assert examples_in(f"Words.\n>>> entry({shown})\n{value!r}\n", "entry") == expected
    assert examples_in(f"Words.\nassert entry({shown}) == {value!r}\n", "entry") == expected


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    for name in ("f", "len"):
        assert isinstance(examples_in(text, name), list)
        assert isinstance(examples_in(f"{name}({text}) == {text}", name), list)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (">>> f(1) == 2", [((1,), "same(got, 2)")]),
        (">>> f(1) # a remark\n2", [((1,), "same(got, 2)")]),
        (">>> f(1) [2]", [((1,), "same(got, [2])")]),
        (">>> f(1)\n\n>>> f(2)\n3", [((1,), "same(got, None)"), ((2,), "same(got, 3)")]),
        (">>> round(f(1), 2)\n0.5", [((1,), "same(round(got, 2), 0.5)")]),
        ('>>> f("a")\n["b",\n "c"]', [(("a",), "same(got, ['b', 'c'])")]),
        ('f("a\\nb") == "c"', [(("a\nb",), "same(got, 'c')")]),
        ("f(')') => 1", [((")",), "same(got, 1)")]),
        ("f([\n  [1],\n  [2]], 3) == 4", [(([[1], [2]], 3), "same(got, 4)")]),
        ("f(1) => true, f(2) => false", [((1,), "same(got, True)"), ((2,), "same(got, False)")]),
        ("f(19, 5) -> 19 - 5 = 14", [((19, 5), "same(got, 14)")]),
        ("For x = 1, y = 2 the output should be 3.", [((1, 2), "same(got, 3.0)")]),
        ("Input: [1], 2\nOutput: 3", [(([1], 2), "same(got, 3)")]),
        ("Input:\n  x : 1\n  y : 2\nOutput: 3", [((1, 2), "same(got, 3)")]),
        ("assert not f(1)", [((1,), "not got")]),
        ("assert set(f(\n  1)) == set((2,))", [((1,), "same(set(got), set((2,)))")]),
        ("assert g([1]) => 2", [(([1],), "same(got, 2)")]),
        # What is no example of a call with plain data.
        ("f(n) == f(n - 1) + 1", []),
        ("f(1) == f(2)", []),
        ("f(abc) => True", []),
        ("f(x=1) == 2", []),
        ("f(...) == 2", []),
        ("f(1) is even", []),
        ('f(1) == ""a"', []),
        ("f(1) == 2 * 3", []),
        ("len([1]) == 1", []),
        (">>> f(1)\nTraceback (most recent call last):", []),
        ("As g(1, 2) tells, nothing is said here.", []),
    ],
)
def test_the_forms_that_prompts_use(words: str, expected: list[tuple[Any, str]]) -> None:
    for text in (words, prompt(words)):
        assert [(e.arguments, e.check) for e in examples_in(text, "f")] == expected


def test_a_function_may_have_a_builtins_name() -> None:
    assert examples_in("sum([1, 2]) == 3", "sum") == [PromptExample(([1, 2],), "same(got, 3)")]


def test_nothing_of_a_prompt_is_executed() -> None:
    assert examples_in("f(__import__('os').getcwd()) == 1", "f") == []
    with_code = examples_in("assert f(1) == __import__('os')._exit(1)", "f")
    assert with_code == [PromptExample((1,), "same(got, __import__('os')._exit(1))")]


def test_nearly_all_of_humaneval_is_read(humaneval: Benchmark) -> None:
    read = {p.task_id: examples_in(p.prompt, p.tests.entry_point) for p in humaneval.problems}
    without = {task_id for task_id, found in read.items() if not found}
    # These show none, or in words and unquoted.
    assert without == {f"HumanEval/{n}" for n in (38, 41, 50, 80, 83, 105, 160)}
    assert sum(map(len, read.values())) == 454


@pytest.mark.usefixtures("shared_data")
def test_mbpps_own_assertions_are_its_examples() -> None:
    sanitized = benchmarks.load("mbpp-sanitized")
    read = [examples_in(p.prompt, p.tests.entry_point) for p in sanitized.problems]
    assert all(read)
