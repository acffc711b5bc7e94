"""All strategies: what they send, and that their examples are ours and right."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from typing import Any

import pytest

from assay import benchmarks
from assay.errors import AssayError
from assay.prompts import strategies
from assay.prompts._asking import EXAMPLES, SolvedExample
from assay.types import Benchmark, Problem, Tests

NAMES = ("cgo", "few-shot", "scot", "standard")
ALL = (
    "humaneval",
    "humanevalplus",
    "mbpp-all",
    "mbppplus",
    "bigcodebench",
    "bigcodebench-instruct",
)
ALIKE = 8  # words in a row that no two texts share by chance
# Words that every doctest and every loop has.
COMMON = {"for", "in", "if", "return", "and", "not", "is", "None", "the", "of", "a"}


def test_there_are_four() -> None:
    assert strategies.names() == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_problem_is_asked_last_and_whole(name: str, humaneval: Benchmark) -> None:
    build = strategies.get(name).build
    for problem in humaneval.problems:
        chat, text = build(problem, "chat"), build(problem, "text")
        assert chat.messages[-1].role == "user"
        assert problem.prompt.strip() in chat.messages[-1].content
        assert [m.role for m in chat.messages[:-1]] == ["user", "assistant"] * (
            len(chat.messages) // 2
        )
        assert chat.text == ""
        assert text.messages == ()
        assert text.text.endswith(problem.prompt)
        assert "\ndef " in text.stop


@pytest.mark.parametrize("name", NAMES)
def test_words_are_asked_as_words(name: str) -> None:
    asked = "Write self-contained code starting with: def f(x)"
    problem = Problem("t", asked, "", Tests("f", ""))
    last = strategies.get(name).build(problem, "chat").messages[-1].content
    assert last.startswith(asked)
    assert "```" not in last


def test_strategies_differ(humaneval: Benchmark) -> None:
    for form in ("chat", "text"):
        built = {strategies.get(n).build(humaneval.problems[0], form) for n in NAMES}
        assert len(built) == len(NAMES)


@pytest.mark.parametrize("style", ["plain", "planned", "composed"])
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_are_right(example: SolvedExample, style: str) -> None:
    namespace: dict[str, Any] = {}
    exec(getattr(example, f"{style}_solution"), namespace)  # our own
    (name,) = re.findall(r"^def (\w+)", example.prompt, re.M)
    finder = doctest.DocTestFinder()
    (test,) = finder.find(namespace[name], name, module=False, globs=namespace)
    found = doctest.DocTestRunner(verbose=False).run(test)
    assert (found.failed, found.attempted) == (0, 1)


# The plus sets have the same prompts with more tests, which take long to read.
@pytest.mark.parametrize(
    "benchmark",
    [pytest.param(n, marks=pytest.mark.slow if n.endswith("plus") else ()) for n in ALL],
)
def test_the_examples_resemble_no_problem(benchmark: str) -> None:
    try:
        problems = benchmarks.load(benchmark).problems
    except AssayError as error:
        pytest.skip(f"the data of {benchmark} is not here: {error}")
    ours = {run for e in EXAMPLES for run in _runs(e.planned_solution + e.composed)}
    names = {match for e in EXAMPLES for match in re.findall(r"def (\w+)\(", e.prompt)}
    for problem in problems:
        assert problem.tests.entry_point not in names
        shared = ours & set(_runs(problem.prompt + problem.reference))
        assert not shared, (problem.task_id, shared)


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    """Words in a row, names and numbers alike."""
    words = [word for word in re.findall(r"\w+", text) if word not in COMMON]
    return zip(*(words[start:] for start in range(ALIKE)), strict=False)
