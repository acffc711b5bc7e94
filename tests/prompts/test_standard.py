"""What the standard strategy sends."""

from __future__ import annotations

import pytest

from assay.errors import UsageError
from assay.prompts import strategies
from assay.types import Benchmark, Problem, Tests


def test_chat_models_are_asked_with_the_whole_prompt(humaneval: Benchmark) -> None:
    build = strategies.get("standard").build
    for problem in humaneval.problems:
        prompt = build(problem, "chat")
        (message,) = prompt.messages
        assert message.role == "user"
        assert problem.prompt.strip() in message.content
        assert prompt.text == ""


def problem(prompt: str) -> Problem:
    return Problem("t", prompt, "", Tests("f", ""))


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        ("def f(x):\n    pass\n", "Complete the following Python function."),
        ('"""Double it, as f."""\n', "Write the Python function that is described here."),
        ("Write self-contained code starting with: def f(x)", "Write self-contained code"),
        (f"x = {'-' * 100_000}1", "x = ---"),  # too deep for Python's parser
    ],
)
def test_the_question_fits_what_is_there(prompt: str, asked: str) -> None:
    (message,) = strategies.get("standard").build(problem(prompt), "chat").messages
    assert message.content.startswith(asked)
    assert prompt.strip() in message.content


def test_base_models_get_the_raw_prompt_and_stop_words(humaneval: Benchmark) -> None:
    problem = humaneval.problems[0]
    prompt = strategies.get("standard").build(problem, "text")
    assert prompt.text == problem.prompt
    assert prompt.messages == ()
    assert "\ndef " in prompt.stop


def test_an_unknown_strategy_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="Choose .*standard"):
        strategies.get("telepathy")
