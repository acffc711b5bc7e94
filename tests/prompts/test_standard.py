"""What the standard strategy sends."""

from __future__ import annotations

import pytest

from assay.errors import UsageError
from assay.prompts import strategies
from assay.types import Benchmark


def test_chat_models_are_asked_with_the_whole_prompt(humaneval: Benchmark) -> None:
    build = strategies.get("standard").build
    for problem in humaneval.problems:
        prompt = build(problem, "chat")
        (message,) = prompt.messages
        assert message.role == "user"
        assert problem.prompt.strip() in message.content
        assert prompt.text == ""


def test_base_models_get_the_raw_prompt_and_stop_words(humaneval: Benchmark) -> None:
    problem = humaneval.problems[0]
    prompt = strategies.get("standard").build(problem, "text")
    assert prompt.text == problem.prompt
    assert prompt.messages == ()
    assert "\ndef " in prompt.stop


def test_an_unknown_strategy_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="choose .*standard"):
        strategies.get("telepathy")
